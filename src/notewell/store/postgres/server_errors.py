"""Translates errors of PostgreSQL into ours, with what to do next and without passwords."""

from __future__ import annotations

import re
from typing import Any

import psycopg

from notewell.errors import (
    DiskFullError,
    IndexBusyError,
    IndexCorruptError,
    IndexReadOnlyError,
    StoreError,
    StoreUnavailableError,
)


class Secrets:
    """Splits a URL into what may be shown and what must not."""

    def __init__(self, url: str) -> None:
        found = re.match(
            r"(?P<scheme>\w+://)(?:(?P<user>[^:@/]*)(?::(?P<password>.*))?@)?(?P<rest>[^@]*)$", url, re.DOTALL
        )
        self.is_cut = False  # the password has a character that must be percent-encoded
        passwords = re.findall(r"(?:password|sslpassword|passfile)\s*=\s*'?([^&'\s]+)", url)
        if found and found["password"]:
            from urllib.parse import unquote

            passwords += [found["password"], unquote(found["password"])]
            # PostgreSQL ends a password at the first of these, and would name what follows as the host.
            self.is_cut = bool(re.search("[@/?]", found["password"])) and not re.match(r"\d+/", found["password"])
        self._passwords = sorted(filter(None, set(passwords)), key=len, reverse=True)
        where = re.split(r"[?#]", found["rest"])[0] if found else ""
        user = f"{found['user']}@" if found and found["user"] else ""
        self.shown = f"postgresql://{user}{where}" if found else "the database in store.url"

    def hide(self, text: str) -> str:
        """Return the text without passwords."""
        for password in self._passwords:
            text = text.replace(password, "***")
        return text


_NO_TRANSACTIONS = "statement pooling|transaction blocks not allowed"  # a pooler in statement mode


def is_lost(error: psycopg.Error, connection: psycopg.Connection[Any] | None = None) -> bool:
    """Return whether the connection is gone or the server is not ready: the same may work on another connection."""
    if re.search(_NO_TRANSACTIONS, str(error)):
        return False
    if connection is not None and connection.closed:
        return True
    state = error.sqlstate or ""
    return isinstance(error, psycopg.OperationalError) and (state[:2] == "08" or state[:3] == "57P")


# Errors that waiting does not cure, by message: libpq has no code for refused connections.
_REFUSED: tuple[tuple[str, str], ...] = (
    ("password authentication failed", "check the password in store.url, or set PGPASSWORD or a passfile"),
    ("no password supplied", "put a password into store.url, or set PGPASSWORD or a passfile"),
    (r"database \".*\" does not exist", "create it: CREATE DATABASE name;"),
    (r"role \".*\" does not exist", "create it: CREATE ROLE name LOGIN PASSWORD '...';"),
    (r"permission denied for database", "run as its owner: GRANT CONNECT ON DATABASE name TO role;"),
    (r"no pg_hba\.conf entry", "allow this host and user in pg_hba.conf, or use sslmode=require"),
    (r"is not permitted to log in", "run: ALTER ROLE name LOGIN;"),
    (r"no such user|no such database", "add it to the pooler's configuration"),
    (r"server does not support SSL|SSL error|certificate", "check sslmode and the certificates in store.url"),
    (r"could not translate host name|Name or service not known|failed to resolve", "check the host in store.url"),
    (r"invalid (port|integer|connection option|sslmode)|invalid .* value", "check store.url"),
    (r"unsupported startup parameter", "set ignore_startup_parameters in the pooler, or leave the option out"),
)


def may_pass(message: str) -> bool:
    """Return whether waiting may help where no connection could be made."""
    return not any(re.search(pattern, message, re.IGNORECASE) for pattern, _ in _REFUSED)


def connect_error(error: psycopg.Error, secrets: Secrets) -> StoreError:
    """Return our error for a connection that could not be made."""
    message = secrets.hide(" ".join(str(error).split()))
    hint = next((hint for pattern, hint in _REFUSED if re.search(pattern, message, re.IGNORECASE)), "")
    if hint:
        return StoreError(f"cannot connect to {secrets.shown}: {message}", hint=hint)
    return StoreUnavailableError(
        f"cannot reach {secrets.shown}: {message}",
        hint="check that the server runs and accepts connections from here",
        unreached=True,
    )


_FULL = "the database server has no room left; what was written before is intact"
_AGAIN = "try again; raise statement_timeout for this role if it happens often"
# What a failed statement means, by SQLSTATE prefix and message; the first match counts.
_MEANINGS: tuple[tuple[str, str, type[StoreError], str], ...] = (
    ("53300", "", StoreUnavailableError, "raise max_connections, or put a pooler in front of the server"),
    ("53", "", DiskFullError, _FULL),
    ("", "File too large|No space left", DiskFullError, _FULL),  # XX000 where a limit of the system ends a file
    ("55P03", "", IndexBusyError, "another process is writing the index; try again when it has finished"),
    ("25006", "", IndexReadOnlyError, "store.url must name the primary server, not a standby"),
    ("57014", "", StoreUnavailableError, _AGAIN),
    ("40", "", StoreUnavailableError, _AGAIN),  # a deadlock, or a replica that had to give up the snapshot
    ("42501", "", StoreError, "run as the owner of the schema: SELECT notewell.bind_role('ROLE', 'TENANT');"),
    ("42P01", "", IndexCorruptError, "a table is missing: drop the schema notewell, then run `notewell index`"),
    ("42703", "", IndexCorruptError, "a column is missing: drop the schema notewell, then run `notewell index`"),
    ("", _NO_TRANSACTIONS, StoreError, "set pool_mode = transaction in the pooler"),
)


def translated(error: psycopg.Error, secrets: Secrets) -> StoreError:
    """Return our error for a statement that failed."""
    message = secrets.hide(" ".join((error.diag.message_primary or str(error)).split()))
    what, state = f"{secrets.shown}: {message}", error.sqlstate or ""
    for code, words, meaning, hint in _MEANINGS:
        if state.startswith(code) and re.search(words, message):
            return meaning(what, hint=hint)
    if isinstance(error, psycopg.OperationalError):
        return StoreUnavailableError(what, hint="try again: the connection to the database was lost")
    return StoreError(what, hint="check the log of the database server")
