"""Names of models on a hub: a name such as `embeddinggemma-300m` or `hf:owner/repository/file.gguf` comes in, where it
is on the hub and where it is kept here goes out; nothing is fetched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.errors import EmbedderUnavailableError

if TYPE_CHECKING:
    from notewell.settings import Settings

SCHEME = "hf:"
DEFAULT_MODEL = "embeddinggemma-300m"
NAMED = {DEFAULT_MODEL: "hf:ggml-org/embeddinggemma-300M-GGUF/embeddinggemma-300M-Q8_0.gguf"}
DEFAULT_REVISION = "main"

_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_REFERENCE = rf"hf:({_WORD})/({_WORD})(?:@({_WORD}))?/((?:{_WORD}/)*{_WORD}\.gguf)"


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a repository on a hub."""

    owner: str
    repository: str
    revision: str
    file: str  # within the repository, "/" between folders

    def address(self, hub_url: str) -> str:
        """Return where to fetch it."""
        from urllib.parse import quote

        path = f"{self.owner}/{self.repository}/resolve/{self.revision}/{self.file}"
        return f"{hub_url.rstrip('/')}/{quote(path)}"

    def kept_at(self, folder: Path) -> Path:
        """Return where it is kept below the folder for models; another revision is another file."""
        return folder.joinpath(f"{self.owner}--{self.repository}", self.revision, *self.file.split("/"))

    def __str__(self) -> str:
        revision = "" if self.revision == DEFAULT_REVISION else f"@{self.revision}"
        return f"{SCHEME}{self.owner}/{self.repository}{revision}/{self.file}"


def hub_file(name: str) -> HubFile:
    """Return the file that a reference or a known name means; raise EmbedderUnavailableError for anything else."""
    found = re.fullmatch(_REFERENCE, NAMED.get(name.lower(), name))
    if not found:
        raise EmbedderUnavailableError(
            f"{name!r} names no model that can be downloaded",
            hint=f"use {' or '.join(NAMED)}, or hf:owner/repository/file.gguf",
        )
    owner, repository, revision, file = found.groups()
    return HubFile(owner, repository, revision or DEFAULT_REVISION, file)


def named_model(settings: Settings) -> str:
    """Return the name of the hub's model that the settings ask for; empty when they name none."""
    for name in (settings.local.model_path, settings.model):
        if name.startswith(SCHEME) or name.lower() in NAMED:
            return name
    return ""


def models_folder(settings: Settings) -> Path:
    """Return where downloaded models are kept."""
    if settings.local.model_cache_dir:
        return Path(settings.local.model_cache_dir)
    from platformdirs import user_cache_path

    return user_cache_path("notewell", appauthor=False) / "models"
