"""Opens the store that the suites check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from notewell.protocols import Store

    OpenStore = Callable[..., Store]


class StoreFixtures:
    """A store in a folder of the test."""

    def create_store(self, folder: Path) -> Store:
        """Return your store with its files in `folder`, made if they are not there yet; it is closed afterwards."""
        raise NotImplementedError

    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Iterator[OpenStore]:
        """Open the store of this test, as often as it is called."""
        opened = []

        def open_in(name: str | Path = ".") -> Store:
            folder = tmp_path / name
            folder.mkdir(exist_ok=True)
            opened.append(self.create_store(folder))
            return opened[-1]

        yield open_in
        for store in opened:
            store.close()

    @pytest.fixture
    def store(self, open_store: OpenStore) -> Store:
        """Return an empty store."""
        return open_store()
