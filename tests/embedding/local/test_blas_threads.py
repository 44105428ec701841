"""Single texts are embedded on one thread, and the host program's products are left as they were."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, threading
import numpy as np
from notewell.embedding.local.cold_start import _openblas, one_blas_thread
from notewell.embedding.local.cold_start import ColdStartModel, QuickStart

blas = _openblas()
if blas is None:
    print("another library")
    raise SystemExit
said = []
quick = QuickStart(lambda: None, lambda window: said.append(blas.threads()) or np.ones(4, np.float32))
model = ColdStartModel(open_tokenizer=lambda: None, open_session=lambda: None, quick_start=quick)
model._vectors_of_windows([[1, 2, 3]])
said.append(blas.threads())

inside, go_on = threading.Event(), threading.Event()
def other():
    with one_blas_thread():
        inside.set()
        go_on.wait(60)
thread = threading.Thread(target=other)
thread.start()
inside.wait(60)
with one_blas_thread():
    said.append(blas.threads())
said.append(blas.threads())  # the other thread is not done
if hasattr(os, "fork"):
    child = os.fork()
    if not child:
        with one_blas_thread():
            fine = blas.threads() == 1
        os._exit(0 if fine and blas.threads() == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
go_on.set()
thread.join()
said.append(blas.threads())
print(said)
"""


@pytest.mark.slow
def test_products_stay_on_their_thread_and_all_is_as_before_afterwards():
    pytest.importorskip("numpy")
    if (os.cpu_count() or 1) < 2:
        pytest.skip("there is one processor")
    environ = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], check=False, env=environ, capture_output=True, text=True, timeout=120
    )
    if done.stdout == "another library\n":
        pytest.skip("NumPy does not use OpenBLAS here")
    assert (done.stdout, done.stderr) == ("[1, 2, 1, 1, 2]\n", "")
