import os

# OpenBLAS threads spin while they wait: with other test workers on the same cores the NumPy forward pass takes five
# times as long. NumPy reads this once, when it is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
