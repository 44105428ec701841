"""A SQLite file layer whose reads, writes, syncs, opens, truncations and deletions can be made to fail."""

from __future__ import annotations

import errno
from collections import Counter
from dataclasses import dataclass

import apsw

OPERATIONS = ("open", "read", "write", "sync", "truncate", "delete")
# What SQLite's own file layer answers for these, by operation.
_CODES = {
    "open": apsw.SQLITE_CANTOPEN,
    "read": apsw.SQLITE_IOERR_READ,
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "delete": apsw.SQLITE_IOERR_DELETE,
}


@dataclass
class Fault:
    """One kind of operation that fails from its so-manieth call on; `times=None` is for good."""

    operation: str
    error_number: int
    on_call: int
    times: int | None = None
    failures: int = 0


class FaultyLayer(apsw.VFS):
    """The real file system with an optional fault; counts every operation."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: Counter[str] = Counter()
        self.fault: Fault | None = None
        super().__init__(name, "")

    def excepthook(self, *_: object) -> bool:
        """Planted failures are no news."""
        return True

    def reach(self, operation: str) -> None:
        self.calls[operation] += 1
        fault = self.fault
        if fault is None or fault.operation != operation:
            return
        if self.calls[operation] < fault.on_call or (fault.times is not None and fault.failures >= fault.times):
            return
        fault.failures += 1
        full = fault.error_number == errno.ENOSPC and operation != "open"
        raise apsw.exception_for(apsw.SQLITE_FULL if full else _CODES[operation])

    def plant(self, fault: Fault | None) -> None:
        self.calls.clear()
        self.fault = fault

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:
        self.reach("open")
        return _File(self, name, flags)

    def xDelete(self, name: str, sync_folder: bool) -> None:
        self.reach("delete")
        super().xDelete(name, sync_folder)


class _File(apsw.VFSFile):
    def __init__(self, layer: FaultyLayer, name: apsw.URIFilename | str | None, flags: list[int]) -> None:
        self._layer = layer
        super().__init__("", name, flags)

    def excepthook(self, *_: object) -> bool:
        """Planted failures are no news."""
        return True

    def xRead(self, amount: int, offset: int) -> bytes:
        self._layer.reach("read")
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._layer.reach("write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._layer.reach("sync")
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:
        self._layer.reach("truncate")
        super().xTruncate(size)
