"""The named ways of searching that an evaluation compares on one index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_HYBRID: Mapping[str, Any] = {"query.mode": "hybrid", "query.fusion": "balanced"}

# name -> settings by key path, on top of those in use
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "hybrid": _HYBRID,
    "keyword": {**_HYBRID, "query.mode": "keyword"},
    "semantic": {**_HYBRID, "query.mode": "semantic"},
    "weighted": {**_HYBRID, "query.fusion": "weighted"},
    "rrf": {**_HYBRID, "query.fusion": "rrf"},
    "hybrid+decay": {**_HYBRID, "query.decay.enabled": True},
    "hybrid+mmr": {**_HYBRID, "query.diversity.enabled": True},
}
DEFAULT_VARIANT = "hybrid"
