"""A text in, the vector a fake provider gives it out: the same text, side and model always give the same one."""

from __future__ import annotations

import base64
import hashlib

import numpy as np


def vector_of(text: str, dimensions: int, *, side: str = "", model: str = "") -> np.ndarray:
    """Return a unit vector (float32) that only `text`, `side` and `model` decide.

    Shorter vectors are the beginning of longer ones, as with the models that can be shortened.
    """
    seed = hashlib.blake2b(f"{model}\0{side}\0{text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    values = np.random.Generator(np.random.SFC64(int.from_bytes(seed, "little"))).standard_normal(dimensions)
    return (values / np.linalg.norm(values)).astype("<f4")


def as_base64(vector: np.ndarray) -> str:
    """Return little-endian float32, in base64, as OpenAI and Voyage send it."""
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()


def token_count(text: str) -> int:
    """Return about how many tokens a provider would count: four bytes each, at least one."""
    return max(1, len(text.encode("utf-8", "surrogatepass")) // 4)
