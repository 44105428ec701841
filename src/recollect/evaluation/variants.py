"""The named ways of searching that an evaluation compares on one index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# name -> settings by key path, on top of those in use
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "balanced": {"query.fusion": "balanced"},
    "keyword": {"provider": "none"},
    "vector": {"query.hybrid.enabled": False},
    "weighted": {"query.fusion": "weighted"},
    "rrf": {"query.fusion": "rrf"},
    "balanced+decay": {"query.fusion": "balanced", "query.decay.enabled": True},
    "balanced+mmr": {"query.fusion": "balanced", "query.diversity.enabled": True},
}
DEFAULT_VARIANT = "balanced"
