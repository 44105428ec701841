"""Runs models with onnxruntime, several texts at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from notewell.embedding.local import import_package
from notewell.embedding.local.onnx_writer import INT8, INT32, UINT8, Node, TensorType, model_bytes
from notewell.errors import EmbedderError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Job = TypeVar("Job")
Result = TypeVar("Result")

MAX_WORKERS = 8  # indexing runs in the background: leave a large machine usable
_SIGNAL_CHECK_S = 0.5  # an endless wait cannot be interrupted with Ctrl-C on Windows


class Session:
    """An onnxruntime session, with the weights it was given kept alive beside it."""

    def __init__(
        self,
        model: bytes | Path,
        *,
        weights: Mapping[str, NDArray[np.generic]] | None = None,
        disabled_optimizers: Sequence[str] = (),
    ) -> None:
        onnxruntime = import_package("onnxruntime")
        options = onnxruntime.SessionOptions()
        # One thread and one text per run, several runs at once: on two cores, with 100 and 400 tokens, as fast as
        # batches of 4 to 16 or two threads per run, without padding; and vectors do not depend on other texts.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # fatal only: errors come back as exceptions
        if products_saturate():
            options.add_session_config_entry("session.x64quantprecision", "1")
        self._weights = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in (weights or {}).items()
        }
        if self._weights:
            options.add_external_initializers(list(self._weights), list(self._weights.values()))
        self._session = onnxruntime.InferenceSession(
            model if isinstance(model, bytes) else os.fspath(model),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=list(disabled_optimizers),
        )
        self.inputs: dict[str, str] = {value.name: value.type for value in self._session.get_inputs()}
        self.outputs: list[str] = [value.name for value in self._session.get_outputs()]

    def run(self, output: str, inputs: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Return one output; any number of threads may run at once."""
        try:
            (result,) = self._session.run([output], dict(inputs))
        except Exception as error:  # onnxruntime's own classes share no other base
            raise EmbedderError(
                f"the local model failed on a text: {error}",
                hint="run `notewell index` again; the other texts are kept",
            ) from error
        return np.asarray(result, dtype=np.float32)


@lru_cache(maxsize=1)
def products_saturate() -> bool:
    """Return whether fast products of 8-bit numbers overflow on this processor.

    x86 processors without VNNI add pairs of products in 16 bits. onnxruntime has slower products for them, which it
    does not choose by itself.
    """
    onnxruntime = import_package("onnxruntime")
    content = model_bytes(
        [Node("MatMulInteger", ["left", "right"], ["product"])],
        inputs=[TensorType("left", UINT8, [16, 64]), TensorType("right", INT8, [64, 16])],
        outputs=[TensorType("product", INT32, [16, 16])],
        weights=[],
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    left, right = np.full((16, 64), 255, np.uint8), np.full((64, 16), 127, np.int8)
    (product,) = session.run(None, {"left": left, "right": right})
    return bool((np.asarray(product) != 64 * 255 * 127).any())


def usable_cores() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # respects containers and taskset; Linux only
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def on_all_cores(work: Callable[[Job], Result], jobs: Sequence[Job]) -> list[Result]:
    """Return `work(job)` for each job, in order; an error or Ctrl-C stops it after the running jobs."""
    workers = min(usable_cores(), MAX_WORKERS, len(jobs))
    if workers <= 1:
        return [work(job) for job in jobs]
    pool = ThreadPoolExecutor(workers, thread_name_prefix="notewell-embedding")
    try:
        futures = [pool.submit(work, job) for job in jobs]
        pending = set(futures)
        while pending:
            done, pending = wait(pending, timeout=_SIGNAL_CHECK_S, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        return [future.result() for future in futures]
    finally:
        pool.shutdown(cancel_futures=True)
