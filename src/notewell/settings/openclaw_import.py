"""Translates OpenClaw's settings into a settings file of notewell."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from notewell.errors import SettingsError
from notewell.files.atomic import write_atomically
from notewell.settings.load import parsed, text_of
from notewell.settings.model import OPTIONS, PROVIDERS
from notewell.settings.option import toml_value
from notewell.settings.workspace import checked_agent, user_file_of

MAX_KEYS = 2000  # in one block; YAML aliases can expand a small file without end
IGNORED_NAMES = ("config.yaml", "config.yml", "notewell.yaml", "notewell.yml")
_BLOCKS = ("memory", "memorySearch", "agents")  # OpenClaw's blocks with settings of the memory
_OF_MEMORY = rb"(?m)^(?:memory|memorySearch|agents)\s*:"

# OpenClaw's names below `memorySearch` or `memory` that differ from ours in camelCase.
RENAMED: Mapping[str, str] = {
    "embedding.provider": "provider",
    "embedding.model": "model",
    "chunkSize": "chunking.tokens",
    "chunkTokens": "chunking.tokens",
    "chunkOverlap": "chunking.overlap",
    "maxResults": "query.max_results",
    "minScore": "query.min_score",
    "vectorWeight": "query.hybrid.vector_weight",
    "textWeight": "query.hybrid.text_weight",
    "candidateMultiplier": "query.hybrid.candidate_multiplier",
    "halfLifeDays": "query.decay.half_life_days",
    "mmrLambda": "query.diversity.relevance",
    "query.hybrid.keywordWeight": "query.hybrid.text_weight",
    "query.hybrid.temporalDecay.enabled": "query.decay.enabled",
    "query.hybrid.temporalDecay.halfLifeDays": "query.decay.half_life_days",
    "query.hybrid.mmr.enabled": "query.diversity.enabled",
    "query.hybrid.mmr.lambda": "query.diversity.relevance",
    "outputDimensionality": "remote.dimensions",
    "remote.nonBatchConcurrency": "remote.concurrency",
    "citations": "tools.citations",
    "maxInjectedChars": "tools.injected_chars",
    "qmd.maxInjectedChars": "tools.injected_chars",
    "qmd.limits.maxInjectedChars": "tools.injected_chars",
    "qmd.limits.maxResults": "query.max_results",
    "qmd.limits.timeoutMs": "qmd.timeout_ms",
    "qmd.searchMode": "qmd.mode",
    "qmd.update.interval": "qmd.update_minutes",
    "qmd.update.onBoot": "qmd.on_start",
}
NOT_TRANSLATED: Mapping[str, str] = {
    "workspace": "name the folder with --workspace or NOTEWELL_WORKSPACE",
    "store.path": "a database of OpenClaw; notewell keeps its index in .notewell, or where store.path says",
    "store.fts.tokenizer": "notewell splits words by its own rules",
    "$include": "other files are not followed; import them one by one",
}
DECAY = "query.decay.enabled"
DECAY_NOTE = f"{DECAY} = true: OpenClaw lowers the score of dated notes with age; notewell does so only if told to"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A key that was not translated, and why."""

    key: str
    reason: str


@dataclass(slots=True)
class Translation:
    """The translated settings, and what was left out."""

    values: dict[str, Any] = field(default_factory=dict)  # for every agent, by key path
    by_agent: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_toml(self, *, public: bool = False) -> str:
        """Return the text of a settings file; `public` masks secrets."""
        tables = [("", self.values), *((f"agents.{agent}", own) for agent, own in sorted(self.by_agent.items()))]
        return "\n".join(block for prefix, values in tables for block in _toml_tables(prefix, values, public=public))


def translate_file(path: Path) -> Translation:
    """Translate a YAML, JSON, JSON5 or TOML file; raises SettingsError if it has no settings of the memory."""
    document = _read(path)
    if not isinstance(document, Mapping):
        raise SettingsError(f"{path}: not a table of settings", hint="it should begin with `memory:` or `agents:`")
    done = Translation()
    for key, block in document.items():
        if not any(name in document for name in _BLOCKS):
            _translate({key: block}, "", done.values, done)
        elif key == "agents" and isinstance(block, Mapping):
            _translate_agents(block, done)
        elif key in _BLOCKS and isinstance(block, Mapping):
            _translate(block, key, done.values, done)
        else:
            _leave_out(done, str(key), NOT_TRANSLATED.get(str(key), "not a setting of the memory"))
    if not done.values and not done.by_agent:
        raise SettingsError(
            f"{path}: no settings of the memory", hint="they are in `memory`, or in `memorySearch` of `agents.defaults`"
        )
    if DECAY not in done.values:
        done.values[DECAY] = True
        done.notes.append(DECAY_NOTE)
    return done


def ignored_settings(workspace: Path | None, environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Yield a note on each YAML file that looks like settings but is not read."""
    folders = [user_file_of(environ)[0].parent, *([workspace] if workspace else [])]
    for file in (folder / name for folder in dict.fromkeys(folders) for name in IGNORED_NAMES):
        try:
            with file.open("rb") as opened:  # a `config.yaml` may be another program's
                is_ours = file.stem == "notewell" or re.search(_OF_MEMORY, opened.read(64_000))
        except OSError:
            continue
        if is_ours:
            yield f"{file} is not read, settings are TOML: run `notewell config import {shlex.quote(str(file))}`"


# --- translating -----------------------------------------------------------------------------------


def _translate_agents(agents: Mapping[Any, Any], done: Translation) -> None:
    defaults, listed, entries = (agents.get(name) for name in ("defaults", "list", "entries"))
    if isinstance(defaults, Mapping):
        _translate_agent(defaults, "agents.defaults", done.values, done)
    named = [(f"agents.entries.{name}", name, agent) for name, agent in _items(entries)]
    for number, agent in enumerate(listed if isinstance(listed, list) else ()):
        named.append((f"agents.list[{number}]", agent.get("id") if isinstance(agent, Mapping) else None, agent))
    for path, name, agent in named:
        if not isinstance(agent, Mapping) or not isinstance(agent.get("memorySearch"), Mapping):
            _leave_out(done, path, "no settings of the memory")
            continue
        try:
            own = done.by_agent.setdefault(checked_agent(str(name)), {})
        except SettingsError as error:
            _leave_out(done, path, error.message)
        else:
            _translate_agent(agent, path, own, done)
    done.by_agent = {name: own for name, own in done.by_agent.items() if own}
    for name in agents.keys() - {"defaults", "list", "entries"}:
        _leave_out(done, f"agents.{name}", "not a setting of the memory")


def _translate_agent(agent: Mapping[Any, Any], path: str, values: dict[str, Any], done: Translation) -> None:
    for name, block in agent.items():
        if name == "memorySearch" and isinstance(block, Mapping):
            _translate(block, f"{path}.{name}", values, done)
        elif name != "id":
            _leave_out(done, f"{path}.{name}", NOT_TRANSLATED.get(str(name), "not a setting of the memory"))


def _translate(block: Mapping[Any, Any], where: str, values: dict[str, Any], done: Translation) -> None:
    """Add the settings of a block; `where` is its path in the file."""
    for theirs, value in _leaves(block):
        path = f"{where}.{theirs}" if where else theirs
        key = _our_key(theirs)
        if value is None:
            continue
        if theirs in NOT_TRANSLATED or key is None:
            _leave_out(done, path, NOT_TRANSLATED.get(theirs, "there is no such setting"))
            continue
        reason = _misfit(key, value)
        if not reason:
            try:
                values[key] = OPTIONS[key].checked(_converted(theirs, key, value))
            except (ValueError, TypeError, OverflowError):
                reason = f"{key} must be {OPTIONS[key].expected}"
        if reason:
            _leave_out(done, path, reason)


def _our_key(theirs: str) -> str | None:
    key = RENAMED.get(theirs) or re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", theirs).lower()
    return key if key in OPTIONS else None


def _misfit(key: str, value: object) -> str:
    """Return why a value of OpenClaw is not supported; empty if it is."""
    if key in {"provider", "fallback"} and isinstance(value, str) and value not in PROVIDERS:
        return f"there is no provider {value!r}; {key} is one of {', '.join(PROVIDERS)}"
    if OPTIONS[key].secret and isinstance(value, str) and (named := re.fullmatch(r"\$\{?(\w+)\}?", value)):
        return f"stands for the variable {named[1]}, which settings cannot name; the provider's own variable is read"
    return ""


def _converted(theirs: str, key: str, value: object) -> object:
    if theirs in _CONVERSIONS:
        return _CONVERSIONS[theirs](value)
    if OPTIONS[key].kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)  # JavaScript has only one kind of number
    return value


def _tokens(value: Any) -> object:
    """Convert characters to tokens: OpenClaw counts four to one."""
    return value // 4 if isinstance(value, int) else value


def _minutes(value: Any) -> object:
    """Return a duration such as "5m" or "1h" in minutes, rounded up."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)", str(value).strip())
    return math.ceil(float(found[1]) * _MINUTES[found[2]]) if found else value


_MINUTES = {"ms": 1 / 60_000, "s": 1 / 60, "m": 1, "": 1, "h": 60, "d": 1440}
_CONVERSIONS: Mapping[str, Callable[[Any], object]] = {"chunkSize": _tokens, "qmd.update.interval": _minutes}


def _leaves(block: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every value in a block with its dotted path; tables that are a setting stay whole."""
    tables, count = [("", block)], 0
    while tables:
        prefix, table = tables.pop(0)
        for name, value in table.items():
            count += 1
            if count > MAX_KEYS:
                raise SettingsError(f"more than {MAX_KEYS:,} settings", hint="import a file without aliases in a loop")
            if isinstance(value, Mapping) and _our_key(f"{prefix}{name}") is None:
                tables.append((f"{prefix}{name}.", value))
            else:
                yield f"{prefix}{name}", value


def _items(value: object) -> list[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else []


def _leave_out(done: Translation, key: str, reason: str) -> None:
    done.left_out.append(LeftOut(key, reason))


# --- reading and writing files ---------------------------------------------------------------------


def _read(path: Path) -> Any:
    text = text_of(path, required=True, follow=True) or ""
    readers = {".toml": parsed, ".json": _read_json, ".json5": _read_json, ".jsonc": _read_json}
    return readers.get(path.suffix.lower(), _read_yaml)(path, text)


def _read_json(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass  # with comments or unquoted names it is JSON5
    try:
        import pyjson5
    except ImportError as error:
        raise SettingsError(
            f"{path}: JSON5 needs pyjson5 (not installed)", hint='run `pip install "notewell[sessions]"`'
        ) from error
    try:
        return pyjson5.decode(text)
    except (pyjson5.Json5Exception, ValueError) as error:
        raise SettingsError(f"{path}: not valid JSON5: {error}", hint="correct it, or import a YAML file") from error


def _read_yaml(path: Path, text: str) -> Any:
    try:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError
    except ImportError as error:
        raise SettingsError(
            f"{path}: YAML needs ruamel.yaml (not installed)", hint='run `pip install "notewell[yaml]"`'
        ) from error
    try:
        # YAML 1.2, in which `citations: on` is a string; "safe" ignores tags.
        return YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise SettingsError(f"{path}{line}: not valid YAML: {reason}", hint="correct it first") from error


def write_settings(target: Path, text: str, *, replace: bool) -> Path | None:
    """Write a settings file and return the backup of the old one; an existing file is an error without `replace`."""
    old = target.read_bytes() if target.is_file() else b""
    if target.exists() and not (target.is_file() and (replace or not old.strip())):
        raise SettingsError(
            f"{target} exists already",
            hint="see what would be written with --dry-run and add it by hand, or write it with --replace",
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    backup = target.with_name(f"{target.name}.bak") if old.strip() else None
    for name, content in ((backup, old), (target, text.encode())):
        if name is not None:
            write_atomically(name, content, mode=0o600)  # it may contain a key
    return backup


def _toml_tables(prefix: str, values: Mapping[str, Any], *, public: bool) -> Iterator[str]:
    """Yield one TOML table for each group of settings, with its header."""
    groups: dict[str, list[str]] = {}
    for key in (key for key in OPTIONS if key in values):
        group, _, name = key.rpartition(".")
        value = OPTIONS[key].public(values[key]) if public else values[key]
        groups.setdefault(group, []).append(f"{name} = {toml_value(value)}\n")
    for group, lines in sorted(groups.items()):
        header = ".".join(part for part in (prefix, group) if part)
        yield (f"[{header}]\n" if header else "") + "".join(lines)
