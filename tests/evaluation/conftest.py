"""Makes the programs in `evals` importable: they are run from the repository and never installed."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
