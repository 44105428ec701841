"""What the operating system says about our files in, the error of ours that tells a user what to do out."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from notewell.errors import DiskFullError, IndexReadOnlyError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NO_ROOM = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}  # Windows knows no quota error
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}


def store_error(error: OSError, path: Path) -> StoreError:
    """Return the error of ours for a failed file operation at or below `path`."""
    what = f"{error.filename or path}: {error.strerror or error}"
    if error.errno in NO_ROOM:
        return DiskFullError(what, hint="free some space; what was indexed before is intact")
    if error.errno in _NOT_ALLOWED:
        return IndexReadOnlyError(what, hint="check the permissions of the folder that holds the index")
    return StoreError(what, hint="check that the disk that holds the index is readable and writable")


@contextmanager
def as_store_errors(path: Path) -> Iterator[None]:
    """Turn failed file operations into errors of ours; what a provider's connection does wrong is left as it is."""
    try:
        yield
    except (ConnectionError, TimeoutError):
        raise
    except OSError as error:
        raise store_error(error, path) from error
