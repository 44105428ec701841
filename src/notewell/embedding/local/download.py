"""Downloads models from a hub with the client of huggingface_hub.

`hf_hub_download` starts over after a failure and does not verify the checksum. Here, a `.part` file is continued by
later runs, and must have the SHA-256 that the hub announced.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from notewell.embedding.http_calls import retry_after_s
from notewell.embedding.local.models import DEFAULT_MODEL, HubFile, hub_file, models_folder, named_model
from notewell.errors import EmbedderUnavailableError
from notewell.types import Progress

if TYPE_CHECKING:
    from notewell.settings import Settings
    from notewell.types import ProgressCallback

INSTALL_HINT = 'run `pip install "notewell[gguf]"`'
TIMEOUT_S = 60.0  # for a connection and between two pieces
ATTEMPTS = 3  # in a row without a new byte
FIRST_WAIT_S = 1.0  # doubles with each attempt
MAX_WAIT_S = 60.0  # if the hub asks for a longer wait, give up
LOCK_TIMEOUT_S = 5.0
_TRANSIENT = {408, 425, 429, 500, 502, 503, 504}
_HEADERS = {"user-agent": "notewell"}  # huggingface_hub would send the versions of Python and packages


def download_model(
    name: str = "", *, settings: Settings | None = None, progress: ProgressCallback | None = None
) -> Path:
    """Download a model, unless it exists, and return its path.

    The default `name` is the model in the settings, or embeddinggemma-300m. Raises EmbedderUnavailableError when the
    hub cannot be reached, does not have the model, or sends something else.
    """
    from notewell.settings import Settings as Defaults

    settings = settings or Defaults()
    file = hub_file(name or named_model(settings) or DEFAULT_MODEL)
    target = file.path_in(models_folder(settings))
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target):
            if not target.is_file():  # another process may have been faster
                Download(file, settings.local.hub_url, target, progress or (lambda _: None)).run()
    return target


@contextlib.contextmanager
def _locked(target: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout

    try:
        with FileLock(f"{target}.lock", timeout=LOCK_TIMEOUT_S):
            yield
    except Timeout as error:
        raise EmbedderUnavailableError(
            f"another process is downloading {target.name}", hint="wait until it is done"
        ) from error


@dataclass(frozen=True, slots=True)
class _Announced:
    """The facts about a file that the hub announces."""

    address: str
    size: int | None
    sha256: str | None


class _TransientError(Exception):
    """A failure that is worth another attempt."""

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


class Download:
    """The download of one file; `run` may be called again after a failure."""

    def __init__(self, file: HubFile, hub_url: str, target: Path, progress: ProgressCallback) -> None:
        try:
            import huggingface_hub
        except ImportError as error:
            raise EmbedderUnavailableError(
                f"downloading models needs huggingface_hub, which cannot be imported: {error}", hint=INSTALL_HINT
            ) from error
        self._hub: Any = huggingface_hub
        self._url: str = huggingface_hub.hf_hub_url(
            file.repository, file.file, revision=file.revision, endpoint=hub_url.rstrip("/")
        )
        self._target = target
        self._part = target.with_name(f"{target.name}.part")
        self._progress = progress

    def run(self) -> None:
        """Fetch what is missing, verify the file, and put it in place."""
        continued = self._present() > 0
        wrong = self._mismatch(self._fetch_all())
        if wrong and continued:  # the file on the hub may have changed since the first part: start over, once
            self._part.unlink(missing_ok=True)
            wrong = self._mismatch(self._fetch_all())
        if wrong:
            self._part.unlink(missing_ok=True)
            raise EmbedderUnavailableError(
                f"the download of {self._target.name} is corrupt: {wrong}",
                hint="run `notewell download` again; if that does not help, a proxy may be changing the file",
            )
        self._part.replace(self._target)

    def _fetch_all(self) -> _Announced:
        """Retry until the file is complete, or there is no progress."""
        attempts = 0
        while True:
            before = self._present()
            try:
                announced = self._announced()
                self._receive(announced)
            except _TransientError as error:
                attempts = 1 if self._present() > before else attempts + 1
                wait_s = FIRST_WAIT_S * 2 ** (attempts - 1) if error.wait_s is None else error.wait_s
                if attempts >= ATTEMPTS or wait_s > MAX_WAIT_S:
                    raise self._unreachable(str(error)) from error
                time.sleep(wait_s)
            else:
                return announced

    def _announced(self) -> _Announced:
        with self._translated():
            # No token: a model that needs one is downloaded by hand, and a mirror must not get to see it.
            metadata = self._hub.get_hf_file_metadata(self._url, token=False, timeout=TIMEOUT_S, headers=_HEADERS)
        address = urljoin(self._url, metadata.location)
        scheme = urlsplit(address).scheme
        if scheme not in {"https", urlsplit(self._url).scheme}:
            raise EmbedderUnavailableError(
                f"the hub redirects {self._url} to an address with {scheme}:, which is not followed",
                hint="check local.hub_url and any proxy",
            )
        etag = (metadata.etag or "").lower()  # hubs give the SHA-256 of large files there
        is_sha256 = len(etag) == 64 and set(etag) <= set("0123456789abcdef")
        return _Announced(address, metadata.size, etag if is_sha256 else None)

    def _receive(self, announced: _Announced) -> None:
        """Append the missing part."""
        present = self._present()
        if present and present == announced.size:
            return
        # Not compressed: sizes and ranges are those of the file itself.
        headers = _HEADERS | {"Accept-Encoding": "identity"} | ({"Range": f"bytes={present}-"} if present else {})
        stream = self._hub.utils.get_session().stream
        with self._translated(), stream("GET", announced.address, headers=headers, timeout=TIMEOUT_S) as response:
            if response.status_code == 416:
                self._part.unlink(missing_ok=True)
                raise _TransientError("the file on the hub is shorter than what was downloaded before")
            self._check_status(response)
            start = present if response.status_code == 206 else 0
            size = announced.size
            if size is None and (length := response.headers.get("Content-Length", "")).isdecimal():
                size = start + int(length)
            self._check_room((size or 0) - start)
            with self._part.open("ab" if start else "wb") as file:
                done = start
                for piece in response.iter_bytes():
                    file.write(piece)
                    done += len(piece)
                    self._progress(Progress("download", done >> 20, max(size or 0, done) >> 20))
        if announced.size is not None and self._present() < announced.size:
            raise _TransientError(f"the connection ended after {self._present():,} of {announced.size:,} bytes")

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Translate errors of huggingface_hub and its HTTP client."""
        from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

        httpx = self._hub.utils.httpx  # httpx in version 1, httpx2 in version 2
        try:
            yield
        except HfHubHTTPError as error:
            self._check_status(error.response)
            raise self._unreachable(str(error)) from error
        except OfflineModeIsEnabled as error:
            raise self._unreachable("HF_HUB_OFFLINE is set") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _TransientError(str(error) or type(error).__name__) from error

    def _check_status(self, response: Any) -> None:
        code = response.status_code
        if code < 400:
            return
        if code in _TRANSIENT:
            raise _TransientError(f"status {code}", retry_after_s(response.headers.get("Retry-After", "")))
        if code in {401, 403}:
            raise EmbedderUnavailableError(
                f"the hub refuses access to {self._url} ({code})",
                hint="accept its terms, download it by hand, and set local.model_path to the file",
            )
        if code in {404, 410}:
            raise EmbedderUnavailableError(
                f"the hub does not have {self._url}", hint="check the name: hf:owner/repository/file.gguf"
            )
        raise self._unreachable(f"status {code}")

    def _check_room(self, needed: int) -> None:
        free = shutil.disk_usage(self._target.parent).free
        if needed > free:
            raise EmbedderUnavailableError(
                f"{self._target.name} needs {needed >> 20:,} MB more, {self._target.parent} has {free >> 20:,} MB free",
                hint="free some space, or set local.model_cache_dir to a folder with more",
            )

    def _mismatch(self, announced: _Announced) -> str:
        """Return how the download differs from what the hub announced; empty when it does not."""
        size = self._present()
        if announced.size is not None and size != announced.size:
            return f"{size:,} bytes, the hub announced {announced.size:,}"
        if announced.sha256 is None:
            return ""
        with self._part.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        return "" if found == announced.sha256 else f"its sha256 is {found}, the hub announced {announced.sha256}"

    def _present(self) -> int:
        """Return the number of bytes so far."""
        try:
            return self._part.stat().st_size
        except FileNotFoundError:
            return 0

    def _unreachable(self, reason: str) -> EmbedderUnavailableError:
        return EmbedderUnavailableError(
            f"the model hub {urlsplit(self._url).netloc} cannot be reached: {reason}",
            hint="check the network, set local.hub_url to a mirror, or copy the file here and set local.model_path",
        )
