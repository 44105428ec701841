"""Embedders installed as plug-ins, so that a process of its own can be made to fail or wait."""

from __future__ import annotations

from pathlib import Path

EMBEDDER = """
from notewell import BadVectorError, EmbedderError, EmbedderUnavailableError
from notewell.embedding.hashing import HashingEmbedder


class Plugged(HashingEmbedder):
    def embed_documents(self, texts):
        {before}
        return super().embed_documents(texts)


def open_plugged(settings):
    {opening}
    return Plugged()
"""


def install(folder: Path, name: str, *, before: str = "pass", opening: str = "pass") -> Path:
    """Install a provider called `name`; `before` runs before each batch `texts`. Returns the folder for the path."""
    site = folder / f"site-{name}"
    information = site / f"{name}-1.0.dist-info"
    information.mkdir(parents=True)
    (site / f"{name}_embedder.py").write_text(EMBEDDER.format(before=before, opening=opening), encoding="utf-8")
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (information / "entry_points.txt").write_text(
        f"[notewell.embedders]\n{name} = {name}_embedder:open_plugged\n", encoding="utf-8"
    )
    return site
