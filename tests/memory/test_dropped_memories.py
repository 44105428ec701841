"""Memories that nobody closes, and many that are opened and closed at once, give back what they held."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from notewell import Memory
from notewell.embedding.hashing import HashingEmbedder

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def open_files() -> list[str]:
    gc.collect()
    found = []
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - not a folder of files
        try:
            found.append(str(Path(f"/proc/self/fd/{name}").readlink()))
        except FileNotFoundError:  # that of the listing itself
            continue
    return sorted(found)


@pytest.mark.slow
@linux
@pytest.mark.parametrize("chat", [None, "group"])
def test_memories_dropped_without_closing_leave_no_file_open(tmp_path, chat):
    for number in range(10):
        (tmp_path / str(number) / "memory").mkdir(parents=True)
        (tmp_path / str(number) / "memory" / "a.md").write_text("The ferry leaves at four.\n")
    for number in range(10):
        memory = Memory.open(
            tmp_path / str(number),
            embedder=HashingEmbedder(),
            sources=["memory", "sessions"],
            sync__sessions__debounce_ms=50,
        )
        memory.index()
        seen = memory.seen_by(chat=chat) if chat else memory
        assert seen.search("ferry").hits
        memory.conversations.create("chat-1")
        memory.conversations.append("chat-1", {"role": "user", "content": "the ferry"})
        del memory, seen
    for thread in threading.enumerate():
        if thread.name.startswith("notewell-"):  # what was said is still indexed once it has been quiet for a while
            thread.join(60)
    assert not [file for file in open_files() if file.startswith(str(tmp_path))]


AT_ONCE = """
import os, sys, threading
from pathlib import Path
from notewell import Memory

wrong = []
def work(number):
    try:
        for turn in range(4):
            workspace = Path(sys.argv[1]) / f"{number}-{turn}"
            (workspace / "memory").mkdir(parents=True)
            (workspace / "memory" / "a.md").write_text(f"Ferry number {number} leaves the harbour at four.")
            with Memory.open(workspace) as memory:
                memory.index()
                (hit,) = memory.search("when does the boat go", mode="semantic").hits
                assert f"number {number} " in hit.snippet
    except BaseException as error:
        wrong.append(repr(error))

threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
from notewell.embedding.local import models
left = [os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
print(wrong, len(models._copies), [file for file in left if file.startswith(sys.argv[1])])
"""


@linux
@pytest.mark.slow
def test_eight_threads_open_and_close_memories_with_the_threads_that_numpy_starts_by_itself(tmp_path):
    pytest.importorskip("onnxruntime")
    environ = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", AT_ONCE, str(tmp_path)],
        check=False,
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.stdout, done.stderr) == ("[] 0 []\n", "")
