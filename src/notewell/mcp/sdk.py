"""A block of imports in, the same without what a server never uses out: the MCP SDK in two thirds of its time.

- `import mcp.anything` runs `mcp/__init__.py`, which imports the client, its HTTP stack and the high-level server: a
  quarter of the time until a client that starts us has its first answer. Deferred, the two packages stand in
  `sys.modules` without their bodies, which run when somebody asks for a name of theirs.
- The SDK defines a thousand pydantic models, of which a conversation needs some dozens: each is completed when it is
  first used, and the garbage collector does not look through them while they are made. A fifth of the rest.
"""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFERRED = ("mcp", "mcp.server")


class _DeferredPackage(ModuleType):
    """A package whose modules can be imported, and whose own body runs when a name of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self.__spec__ is None or self.__spec__.loader is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.__class__ = ModuleType  # type: ignore[assignment]  # from here on an ordinary package
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


@contextmanager
def lean_imports() -> Iterator[None]:
    """Import the SDK in this block; ImportError means that it is not installed."""
    for name in DEFERRED:
        _defer(name)
    import pydantic

    usual, collecting = pydantic.BaseModel.model_config, gc.isenabled()
    pydantic.BaseModel.model_config = pydantic.ConfigDict(defer_build=True)
    gc.disable()
    try:
        yield
    finally:
        pydantic.BaseModel.model_config = usual
        if collecting:
            gc.enable()


def _defer(name: str) -> None:
    if name in sys.modules:
        return
    spec = find_spec(name)
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    package = _DeferredPackage(name)
    package.__spec__, package.__loader__, package.__file__ = spec, spec.loader, spec.origin
    package.__package__, package.__path__ = name, spec.submodule_search_locations
    sys.modules[name] = package
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, package)
