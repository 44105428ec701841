"""Who embeds for one memory: settings and the identity of the stored vectors come in, an embedder and why go out.

Three questions have three answers: who should embed (`selection`), who embeds after that one failed (`fall_back`), and
who can answer from the vectors that are stored now (`answering`). Vectors of two of them are never compared.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from notewell.embedding.selection import (
    Selection,
    fallback_reason,
    for_provider,
    open_provider,
    select_embedder,
    select_fallback,
)
from notewell.errors import EmbedderError, EmbedderUnavailableError

if TYPE_CHECKING:
    from notewell.protocols import Embedder, Store
    from notewell.settings import Settings
    from notewell.types import EmbedderIdentity

FELL_BACK = "fell_back"  # meta key of an index: why the fallback made its vectors
OFFLINE = ("local", "hashing")  # these send nothing anywhere, so they may answer without being asked for
TRY_AGAIN_S = 30.0  # how long an embedder that failed to introduce itself is left alone by searches


class Embedders:
    """The embedders of one memory, opened when first needed. Safe to use from several threads."""

    def __init__(
        self, settings: Settings, given: Embedder | None, stored: Callable[[], EmbedderIdentity | None]
    ) -> None:
        self._settings = settings
        self._given = Selection(given, "given by the caller") if given else None
        self._stored = stored  # whose vectors the index holds now
        self._lock = threading.RLock()
        self._selection: Selection | None = None
        self._valid_until: float | None = None  # for a selection that may be another one soon
        self._makers: dict[EmbedderIdentity, Embedder | None] = {}

    @property
    def selection(self) -> Selection:
        """Which embedder is used, and why; a provider that cannot run here leaves keyword search, with the reason."""
        with self._lock:
            if self._valid_until is not None and time.monotonic() >= self._valid_until:
                self._drop()
            if self._selection is None:
                self._selection = self._settled(self._select())
            return self._selection

    def for_indexing(self) -> Embedder | None:
        """Return the embedder asked for; one that failed before gets another chance."""
        with self._lock:
            if self._valid_until is not None:
                self._drop()
            return self.selection.embedder

    def fall_back(self, problem: str) -> Embedder | None:
        """Return the fallback after the embedder asked for failed in a run; None when there is none.

        It stays in use until the next run, which tries the one asked for first.
        """
        with self._lock:
            current = self.selection
            if current.embedder is None or current.fell_back or current is self._given:
                return None
            fallback = select_fallback(self._settings, current.embedder.identity.provider, problem)
            if fallback is None:
                return None
            settled = self._settled(fallback)
            if settled.embedder is None:
                return None
            current.embedder.close()
            self._selection, self._valid_until = settled, float("inf")
            return settled.embedder

    def answering(self, built_with: EmbedderIdentity | None) -> tuple[Embedder | None, str]:
        """Return who can embed queries for the vectors that are stored, and what the reader should know about it."""
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
        """Write into the index why the fallback made its vectors, or that it did not."""
        selection = self.selection
        reason = selection.reason if selection.fell_back else ""
        with store.reading() as snapshot:
            known = snapshot.meta(FELL_BACK) or ""
            mine = selection.embedder is not None and snapshot.embedder() == selection.embedder.identity
        if mine and known != reason and not store.read_only:
            store.write_meta({FELL_BACK: reason})

    def close(self) -> None:
        """Close every embedder; the next question opens them again."""
        with self._lock:
            opened = [self._selection.embedder] if self._selection else []
            for embedder in (*opened, *self._makers.values()):
                if embedder is not None:
                    embedder.close()
            self._selection, self._valid_until = None, None
            self._makers.clear()

    def _drop(self) -> None:
        """Forget a selection that was one for the time being."""
        dropped, self._selection = self._selection, None
        if dropped and dropped.embedder:
            dropped.embedder.close()

    def _select(self) -> Selection:
        if self._given:
            return self._given
        if not self._settings.store.vector.enabled:
            return Selection(None, "vectors are turned off (store.vector.enabled)")
        try:
            return select_embedder(self._settings)
        except EmbedderUnavailableError as error:
            return Selection(None, error.message, error.hint)

    def _settled(self, selection: Selection) -> Selection:
        """Return the selection with an embedder whose identity is known, if need be by asking it.

        For a model that nobody knows that is one call, ever: afterwards the index knows it.
        """
        self._valid_until = None
        embedder = selection.embedder
        if embedder is None or getattr(embedder, "known_identity", self) is not None:
            return selection
        recall = getattr(embedder, "recall", None)
        if recall is not None:
            recall(self._stored())
        try:
            embedder.identity  # noqa: B018 - asking for it is what may fail
        except EmbedderError as error:
            embedder.close()
            self._valid_until = time.monotonic() + TRY_AGAIN_S
            return self._instead(selection, error)
        return selection

    def _instead(self, selection: Selection, error: EmbedderError) -> Selection:
        provider = self._settings.provider
        if not selection.fell_back:
            fallback = select_fallback(self._settings, provider, error.message)
            if fallback is not None and getattr(fallback.embedder, "known_identity", self) is not None:
                reason = fallback_reason(self._settings, provider, error.message)
                return replace(fallback, reason=reason, hint=error.hint)
        return Selection(None, error.message, error.hint)

    def _maker(self, built_with: EmbedderIdentity) -> Embedder | None:
        """Return the embedder that made these vectors, if it may be used here without being asked for.

        A remote one may only if the settings still name it: who left a provider does not want it to see queries.
        """
        settings, name = self._settings, built_with.provider
        if self._given or name not in {*OFFLINE, settings.provider, settings.fallback}:
            return None
        for wanted in _ways_to_open(settings, built_with):
            try:
                embedder = open_provider(name, wanted)
                recall = getattr(embedder, "recall", None)
                if recall is not None:
                    recall(built_with)
                known = getattr(embedder, "known_identity", self)
                if known is not None and embedder.identity == built_with:
                    return embedder
            except EmbedderError:
                continue
        return None


def _ways_to_open(settings: Settings, built_with: EmbedderIdentity) -> Iterator[Settings]:
    own = for_provider(settings, built_with.provider)
    yield own
    for dimensions in (0, built_with.dimensions):
        yield replace(own, model=built_with.model, remote=replace(own.remote, dimensions=dimensions))
