"""Makes the marks that stand for secrets, and keeps the key they are made with.

A mark holds a keyed hash: the same secret gives the same mark, and nobody without the key can check a guess. The key
is made once for each user and kept in a file that only the user may read.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from functools import lru_cache
from pathlib import Path

from notewell.files.atomic import write_atomically
from notewell.files.no_follow import read_regular

KEY_BYTES = 32
KEY_VARIABLE = "NOTEWELL_REDACTION_KEY_FILE"
MARK = re.compile(r"\[secret:[a-z0-9-]+:[0-9a-f]{8}\]")


def mark_of(kind: str, secret: str, key: bytes) -> str:
    """Return `[secret:kind:xxxxxxxx]`."""
    digest = hashlib.blake2b(secret.encode("utf-8", "surrogatepass"), key=key, digest_size=4)
    return f"[secret:{kind}:{digest.hexdigest()}]"


def key_file() -> Path:
    """Return where this user's key is kept."""
    named = os.environ.get(KEY_VARIABLE, "")
    if named:
        return Path(named)
    import platformdirs  # 8 ms; only text that holds a secret needs the key

    return Path(platformdirs.user_data_dir("notewell", appauthor=False)) / "redaction.key"


def user_key() -> bytes:
    """Return this user's key, made at its first use.

    Where the file cannot be written, the key lasts as long as the process: secrets are still hidden, but their marks
    differ from run to run.
    """
    return _key_at(key_file())


@lru_cache(maxsize=8)
def _key_at(path: Path) -> bytes:
    try:
        return _stored_key(path) or _made_key(path)
    except OSError:
        return secrets.token_bytes(KEY_BYTES)


def _stored_key(path: Path) -> bytes | None:
    try:
        key = read_regular(path, most_bytes=KEY_BYTES)
    except FileNotFoundError:
        return None
    return key if len(key) == KEY_BYTES else None


def _made_key(path: Path) -> bytes:
    """Put a new key in place; of two processes that do so at once, both get the first one's key."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = secrets.token_bytes(KEY_BYTES)
    try:
        write_atomically(path, new, mode=0o600, overwrite=False)
    except FileExistsError:
        if _stored_key(path) is None:  # torn, or something else
            write_atomically(path, new, mode=0o600)
    key = _stored_key(path)
    if key is None:
        raise FileNotFoundError(path)
    return key
