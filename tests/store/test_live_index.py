"""The index in use is followed when it is switched, and nobody who reads is cut off."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from notewell import IndexCorruptError, Memory, StoreError
from notewell.store.live_index import LiveIndex
from notewell.store.sqlite import open_index
from notewell.store.state_folder import StateFolder


@pytest.fixture
def folder(tmp_path):
    """A state folder with two indexes; the first is current."""
    state = StateFolder(tmp_path / "state")
    state.ensure()
    for number in (1, 2):
        store = open_index(state.path / f"index-{number}.sqlite", create=True, read_only=False)
        store.write_meta({"number": str(number)})
        store.close()
    state.switch_to(state.path / "index-1.sqlite")
    return state


@pytest.fixture
def live(folder):
    index = LiveIndex(folder, lambda path: open_index(path, create=False, read_only=False))
    yield index
    index.close()


def number_of(store):
    with store.reading() as snapshot:
        return snapshot.meta("number")


def test_the_current_index_is_opened_once(live):
    with live.use() as one, live.use() as other:
        assert one is other
        assert number_of(one) == "1"


def test_a_switch_is_followed_at_the_next_use(live, folder):
    with live.use() as store:
        assert number_of(store) == "1"
    folder.switch_to(folder.path / "index-2.sqlite")
    with live.use() as store:
        assert number_of(store) == "2"


def test_a_reader_at_work_keeps_the_old_index_until_it_is_done(live, folder):
    with live.use() as old:
        folder.switch_to(folder.path / "index-2.sqlite")
        with live.use() as new:
            assert (number_of(old), number_of(new)) == ("1", "2")
        with old.reading() as snapshot:  # a snapshot that outlives the other user
            assert snapshot.meta("number") == "1"
    with pytest.raises(StoreError, match="closed"):
        number_of(old)


def test_the_old_index_closes_with_its_last_user_only(live, folder):
    with live.use() as first:
        with live.use() as second:
            folder.switch_to(folder.path / "index-2.sqlite")
            with live.use():
                pass
            assert number_of(second) == "1"
        assert number_of(first) == "1"
    with pytest.raises(StoreError, match="closed"):
        number_of(first)


def test_closing_lets_users_finish_and_the_next_use_opens_again(live):
    with live.use() as store:
        live.close()
        assert number_of(store) == "1"
    with live.use() as again:
        assert again is not store
        assert number_of(again) == "1"


def test_nothing_indexed_is_none_not_an_error(tmp_path):
    live = LiveIndex(StateFolder(tmp_path / "nowhere"), lambda path: open_index(path, create=False, read_only=False))
    with live.use() as store:
        assert store is None


def test_a_pointer_to_an_index_that_never_opens_is_said_to_be_damaged(folder):
    def vanish(path):
        raise FileNotFoundError(path)

    with pytest.raises(IndexCorruptError, match="vanishes whenever it is opened"), LiveIndex(folder, vanish).use():
        pass


@pytest.mark.parametrize("content", ["", "../../etc/passwd\n", "index-x.sqlite", "index-99.sqlite\n", "\x00\x01"])
def test_a_pointer_that_names_no_index_means_nothing_is_indexed(folder, live, content):
    (folder.path / "CURRENT").write_text(content, encoding="utf-8")
    with live.use() as store:
        assert store is None


@pytest.mark.slow
def test_many_readers_never_fail_while_the_index_is_rebuilt_again_and_again(workspace):
    stop = threading.Event()

    def read() -> set[str]:
        answers = set()
        while not stop.is_set():
            answers.add(memory.search("guest network name", sync=False).hits[0].path)
        return answers

    with (
        Memory.open(workspace, provider="hashing") as memory,
        Memory.open(workspace, provider="hashing") as writer,
        ThreadPoolExecutor(4) as pool,
    ):
        writer.index()
        readers = [pool.submit(read) for _ in range(4)]
        try:
            for _ in range(8):
                assert writer.index(force=True).rebuilt
        finally:
            stop.set()
        assert all(reader.result() <= {"memory/network.md"} for reader in readers)
