"""The fake OpenAI of the tests in a process of its own: address and key on stdout, then counts for each line on stdin.

Vectors come from a small pool made beforehand, so that an answer costs the server little more than the wait.
"""

from __future__ import annotations

import json
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

REPOSITORY = Path(__file__).resolve().parent.parent
POOL = 512  # different vectors

sys.path.insert(0, str(REPOSITORY))

from tests.fakes.openai import FakeOpenAI  # noqa: E402 - it is run as a script


class PooledOpenAI(FakeOpenAI):
    """Answers with vectors that were made beforehand."""

    def __init__(self, *, latency: float) -> None:
        super().__init__(latency=latency)
        made = np.random.default_rng(1).standard_normal((POOL, self.dimensions)).astype("<f4")
        self._pool = made / np.linalg.norm(made, axis=1, keepdims=True)

    def vectors(self, texts: Sequence[str], dimensions: int, **_: object) -> list[np.ndarray]:
        return [self._pool[zlib.crc32(text.encode()) % POOL, :dimensions] for text in texts]


def main(latency_s: float) -> None:
    """Serve until stdin ends."""
    with PooledOpenAI(latency=latency_s) as server:
        print(json.dumps({"base_url": server.base_url, "key": server.key}), flush=True)
        for _ in sys.stdin:
            requests = server.requests_to("embed")
            counts = {
                "requests": len(requests),
                "texts": sum(len(request.json["input"]) for request in requests),
                "connections": server.connections,
                "peak": server.peak,
                "cpu_s": time.process_time(),
            }
            print(json.dumps(counts), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
