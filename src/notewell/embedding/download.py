"""Fetches models: the name of a file on a hub comes in, the checked file goes out; what broke off goes on there.

A hub says how long a file is and what its SHA-256 is; both must be true of what arrived before it is used.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from notewell.embedding.hub import DEFAULT_MODEL, hub_file, models_folder, named_model
from notewell.errors import EmbedderUnavailableError
from notewell.types import Progress

if TYPE_CHECKING:
    from notewell.settings import Settings
    from notewell.types import ProgressCallback

TIMEOUT_S = 60.0  # for a connection and for each block
TRIES = 3  # in a row without a single new byte
PAUSE_S = 0.5  # doubles with each try
LONGEST_WAIT_S = 60.0  # a server that asks for more patience than that is given up
_BLOCK = 1 << 20
_MOST_REDIRECTS = 5
_REDIRECTS = {301, 302, 303, 307, 308}
_WORTH_ANOTHER_TRY = {408, 425, 429, 500, 502, 503, 504}
_LOCK_PATIENCE_S = 5.0


def download_model(
    name: str = "", *, settings: Settings | None = None, progress: ProgressCallback | None = None
) -> Path:
    """Fetch a model into the folder for models and return its path; one that is there already is not fetched again.

    Without a name it is the one that the settings ask for, or embeddinggemma-300m. Raises EmbedderUnavailableError
    when the hub cannot be reached, does not have it, or sends something else.
    """
    if settings is None:
        from notewell.settings import Settings as Defaults

        settings = Defaults()
    file = hub_file(name or named_model(settings) or DEFAULT_MODEL)
    target = file.kept_at(models_folder(settings))
    if target.is_file():
        return target
    download = Download(file.address(settings.local.hub_url), target, progress or (lambda _: None))
    with _alone(target):
        if not target.is_file():  # another process may have been faster
            download.run()
    return target


@contextlib.contextmanager
def _alone(target: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout

    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(f"{target}.lock", timeout=_LOCK_PATIENCE_S):
            yield
    except Timeout as error:
        raise EmbedderUnavailableError(
            f"another process is downloading {target.name}", hint="wait until it is done"
        ) from error


@dataclass(frozen=True, slots=True)
class _Announced:
    """What the hub says of a file before it sends it."""

    size: int | None
    sha256: str | None


class _TryAgainError(Exception):
    """The connection failed in a way that may pass."""

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


class Download:
    """One file on its way; `run` may be called again after it failed."""

    def __init__(self, address: str, target: Path, progress: ProgressCallback) -> None:
        self._address = address
        self._target = target
        self._part = target.with_name(f"{target.name}.part")
        self._progress = progress

    def run(self) -> None:
        """Fetch what is missing, check it, and put it in place."""
        continued = self._present() > 0
        announced = self._complete()
        wrong = self._fault(announced)
        if wrong and continued:  # the file on the hub may have changed since the first part came: all of it anew, once
            self._part.unlink(missing_ok=True)
            wrong = self._fault(self._complete())
        if wrong:
            self._part.unlink(missing_ok=True)
            raise EmbedderUnavailableError(
                f"{self._target.name} arrived damaged: {wrong}",
                hint="run `notewell download` again; if it stays so, a proxy on the way may change the file",
            )
        self._part.replace(self._target)

    def _complete(self) -> _Announced:
        """Try until all of it is there, or nothing more comes."""
        tries = 0
        while True:
            before = self._present()
            try:
                return self._fetch()
            except _TryAgainError as error:
                tries = 1 if self._present() > before else tries + 1
                wait_s = PAUSE_S * 2**tries if error.wait_s is None else error.wait_s
                if tries >= TRIES or wait_s > LONGEST_WAIT_S:
                    raise self._unreachable(str(error)) from error
                _pause(wait_s)

    def _fetch(self) -> _Announced:
        """Receive what is missing into the part file; raise _TryAgainError when the connection ends too early."""
        present = self._present()
        headers = {"Range": f"bytes={present}-"} if present else {}
        try:
            with self._open(headers) as (response, announced):
                resumed = response.status == http.client.PARTIAL_CONTENT and _range_start(response.headers) == present
                start = present if resumed else 0
                self._check_room(announced, start)
                self._receive(response, start, announced)
        except (OSError, http.client.HTTPException) as error:  # reset, timeout, body shorter than announced
            if isinstance(error, OSError) and error.filename:
                raise  # a file of ours, not the connection
            raise _TryAgainError(str(error) or type(error).__name__) from error
        if announced.size is not None and self._present() < announced.size:
            raise _TryAgainError(f"the connection ended after {self._present():,} of {announced.size:,} bytes")
        return announced

    @contextlib.contextmanager
    def _open(self, headers: dict[str, str]) -> Iterator[tuple[Any, _Announced]]:
        address, size, sha256 = self._address, None, None
        for _ in range(_MOST_REDIRECTS):
            response = _request(address, headers)
            with response:
                size = size or _number(response.headers.get("X-Linked-Size"))
                sha256 = sha256 or _sha256_of(response.headers.get("X-Linked-ETag"))
                if response.status in _REDIRECTS:
                    address = _redirected(address, response.headers.get("Location", ""))
                    continue
                if response.status == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                    self._part.unlink(missing_ok=True)
                    raise _TryAgainError("the file on the hub is shorter than what came before")
                if response.status >= 400:
                    self._refuse(response)
                sha256 = sha256 or _sha256_of(response.headers.get("ETag"))
                yield response, _Announced(size or _whole_size(response), sha256)
                return
        raise self._unreachable("it leads from one address to the next without end")

    def _refuse(self, response: Any) -> None:
        code = response.status
        if code in _WORTH_ANOTHER_TRY:
            raise _TryAgainError(f"it answered {code}", _seconds(response.headers.get("Retry-After")))
        if code in {401, 403}:
            raise EmbedderUnavailableError(
                f"the hub does not give out {self._address} ({code})",
                hint="download it by hand after accepting its terms, and set local.model_path to the file",
            )
        if code in {404, 410}:
            raise EmbedderUnavailableError(
                f"the hub has no {self._address}", hint="check the name: hf:owner/repository/file.gguf"
            )
        raise self._unreachable(f"it answered {code}")

    def _receive(self, response: Any, start: int, announced: _Announced) -> None:
        total = announced.size or 0
        with self._part.open("r+b" if start else "wb") as file:
            file.seek(start)
            file.truncate()
            done = start
            while block := response.read(_BLOCK):
                file.write(block)
                done += len(block)
                self._progress(Progress("download", done >> 20, max(total, done) >> 20))

    def _check_room(self, announced: _Announced, start: int) -> None:
        needed = (announced.size or 0) - start
        free = shutil.disk_usage(self._target.parent).free
        if needed > free:
            raise EmbedderUnavailableError(
                f"{self._target.name} needs {needed >> 20:,} MB more, {self._target.parent} has {free >> 20:,} MB free",
                hint="free some space, or set local.model_cache_dir to a folder with more",
            )

    def _fault(self, announced: _Announced) -> str:
        """Say what is wrong with what came; empty when it is what the hub announced."""
        size = self._present()
        if announced.size is not None and size != announced.size:
            return f"{size:,} bytes came, the hub announced {announced.size:,}"
        if announced.sha256 is None:
            return ""
        with self._part.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        return "" if found == announced.sha256 else f"its sha256 is {found}, the hub announced {announced.sha256}"

    def _present(self) -> int:
        try:
            return self._part.stat().st_size
        except FileNotFoundError:
            return 0

    def _unreachable(self, reason: str) -> EmbedderUnavailableError:
        host = urlsplit(self._address).netloc
        return EmbedderUnavailableError(
            f"the model hub {host} cannot be reached: {reason}",
            hint="check the network, set local.hub_url to a mirror, or copy the file here and set local.model_path",
        )


def _pause(seconds: float) -> None:
    time.sleep(seconds)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Shows redirects as they are: the first answer holds the checksum, the last one the file."""

    def redirect_request(self, *_: object) -> None:
        return None


def _request(address: str, headers: dict[str, str]) -> Any:
    """Return the answer, whatever its status; raise _TryAgainError when there is none."""
    request = urllib.request.Request(address, headers={"User-Agent": "notewell", **headers})  # noqa: S310
    try:
        return urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as answer:
        return answer
    except urllib.error.URLError as error:
        raise _TryAgainError(str(error.reason)) from error


def _redirected(address: str, location: str) -> str:
    target = urljoin(address, location)
    scheme = urlsplit(target).scheme
    if scheme not in ({"https"} if address.startswith("https:") else {"http", "https"}):
        raise EmbedderUnavailableError(
            f"the hub sends {address} on to an address of {scheme}:, which is not followed",
            hint="check local.hub_url and the proxy in between",
        )
    return target


def _whole_size(response: Any) -> int | None:
    _, _, total = response.headers.get("Content-Range", "").partition("/")
    if response.status == http.client.PARTIAL_CONTENT:
        return _number(total)
    return _number(response.headers.get("Content-Length"))


def _range_start(headers: Any) -> int | None:
    unit, _, rest = headers.get("Content-Range", "").partition(" ")
    return _number(rest.partition("-")[0]) if unit == "bytes" else None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isdecimal() else None


def _sha256_of(etag: str | None) -> str | None:
    """Return the checksum in an ETag; hubs give the SHA-256 of large files there."""
    value = (etag or "").removeprefix("W/").strip('"').lower()
    return value if len(value) == 64 and all(digit in "0123456789abcdef" for digit in value) else None
