"""A process that indexes on command: one JSON request a line comes in, one JSON answer a line goes out.

Where the system can fork, each request is done by a child, so that hundreds can be killed without paying for Python's
start each time. `kill_after_s` kills the child from outside, `kill_at_call` at the so-manieth function call; `count`
counts only calls of functions of that name.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from types import FrameType
from typing import Any

import numpy as np

from notewell import Memory
from notewell.embedding.hashing import HashingEmbedder
from notewell.sources.transcripts import growing


def index(request: dict[str, Any]) -> None:
    """Do one indexing run, and die in the midst of it if asked to."""
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        if "count" in request and (event, frame.f_code.co_name) != ("call", request["count"]):
            return
        calls += 1
        if calls == request.get("kill_at_call"):
            os.kill(os.getpid(), signal.SIGKILL)

    if request.get("profile"):
        sys.setprofile(count)
    if "piece_chars" in request:  # so that a small conversation is taken in piece by piece, as a large one is
        growing.PIECE_CHARS = request["piece_chars"]
    options = request.get("options", {})
    with Memory.open(
        request["workspace"], provider="hashing", cache__enabled=request.get("cache", True), **options
    ) as memory:
        memory.index(force=request.get("force", False))
    sys.setprofile(None)
    answer({"calls": calls})


def answer(document: object) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Serve requests until stdin ends."""
    HashingEmbedder().embed_query("everything is imported before the first child is forked")
    np.zeros(1)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                index(request)
            except BaseException as error:
                answer({"failed": repr(error)})
                raise
            finally:
                os._exit(0)
        if "kill_after_s" in request:
            time.sleep(request["kill_after_s"])
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        answer({"done": True, "killed": os.WIFSIGNALED(status)})


if __name__ == "__main__":
    main()
