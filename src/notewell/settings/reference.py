"""Writes docs/configuration.md from the settings: `python -m notewell.settings.reference`."""

from __future__ import annotations

import sys

from notewell.settings.masking import as_plain
from notewell.settings.model import GROUPS, OPTIONS
from notewell.settings.option import Option

_INTRODUCTION = """\
# Configuration

<!-- Made by `python -m notewell.settings.reference`: change the settings or that module, not this page. -->

notewell needs no configuration: every setting has a default that works offline and without an API key. This page
says where settings can be written, which files may set what, and what each one means.

`notewell config show` prints the settings in use, where each one came from, and every value that was adjusted.

## Where settings come from

Each layer overrides the ones before it, one setting at a time. A list or a table of headers is replaced as a whole.

1. **Built-in defaults**: the tables below.
2. **Your own file**, or the one that `NOTEWELL_CONFIG` names:
   - Linux: `~/.config/notewell/config.toml`, or in `$XDG_CONFIG_HOME`
   - macOS: `~/Library/Application Support/notewell/config.toml`
   - Windows: `%LOCALAPPDATA%\\notewell\\config.toml`
3. **The workspace's file**: `notewell.toml` in the workspace. It may set [only what is
   safe](#what-a-workspace-file-may-set).
4. **Environment variables**: `NOTEWELL_...`
5. **Flags**: the options of the command you run, or the `flags` passed to `load_settings` in Python.

### Settings files

Files are TOML. A file of your own could be:

```toml
# ~/.config/notewell/config.toml
provider = "openai"
fallback = "local"
extra_paths = ["~/notes/shared"]

[remote.batch]
enabled = true

[cache]
max_entries = 200000

[agents.archivist]                 # this agent only, on top of the settings above
sources = ["memory", "sessions"]
```

And one that travels with a workspace:

```toml
# notewell.toml
extra_paths = ["docs", "decisions/README.md"]

[chunking]
tokens = 300
overlap = 60

[query]
max_results = 8

[agents.reviewer.query]
min_score = 0.5
```

- Settings for all agents go at the top of the file, or all of them into `[defaults]` and its sub-tables, such as
  `[defaults.query]`; a file has one or the other, not both.
- `[agents.<id>]` overrides the file's settings for one agent. An id has 1 to 64 of `a-z`, `0-9`, `-` and `_`, starts
  with a letter or digit, and ignores case.
- In a path, `~` is your home folder; relative paths start at the workspace.

### Environment variables

A variable's name is `NOTEWELL_` and the key in upper case, with two underscores where the key has a dot:

```sh
NOTEWELL_PROVIDER=none
NOTEWELL_REMOTE__BASE_URL=https://gateway.example/v1
NOTEWELL_QUERY__HYBRID__VECTOR_WEIGHT=0.5
NOTEWELL_EXTRA_PATHS=docs,../shared
NOTEWELL_REMOTE__HEADERS='{"X-Team": "memory"}'
```

- Booleans: `true`, `1`, `yes`, `on` or `false`, `0`, `no`, `off`.
- Lists: separated by commas, or a JSON list when an item contains a comma. `[]` is the empty list.
- Headers: a JSON object.
- An empty variable counts as not set.
- `NOTEWELL_WORKSPACE`, `NOTEWELL_AGENT` and `NOTEWELL_CONFIG` choose the workspace, the agent and your settings
  file. They are not settings. To run without your own file, let `NOTEWELL_CONFIG` name an empty one (`/dev/null`, or
  `NUL` on Windows). `NOTEWELL_REDACTION_KEY_FILE` names the file with the key for the placeholders of redacted secrets.
- Any other name that starts with `NOTEWELL_` is an error, so that a typo is never silently ignored.

## Mistakes

An unknown key, an unknown choice or a value of the wrong type stops the command. The message names the file and line,
or the variable, says what is allowed, and suggests the key you probably meant:

```
notewell.toml:4: query.max_results must be a whole number from 1 to 1000, got "six"
```

A number outside its range is no error: the nearest allowed number is used, and `notewell config show` says so. In
the same way `chunking.overlap` is kept below `chunking.tokens`, and the two weights in `query.hybrid` are
scaled to sum to 1 (two zeros give the defaults).

API keys and secret headers are never shown: not in messages, not by `notewell config show`.

## What a workspace file may set

`notewell.toml` comes with the folder, and the folder may be a repository that somebody else wrote. So it cannot
choose who gets to see your notes, which programs and models are loaded, or which files outside of it are read. It may
set only what the column "workspace file" allows; anything else is an error that says where you can set it yourself.

- `extra_paths` may name only relative paths that stay inside the workspace, also after links are followed.
- `provider` and `fallback` may be `"local"` or `"none"`. Not `"auto"`: if your own file says that nothing may leave
  this machine, no workspace can undo it.
- `sources` may be `["memory"]`: no workspace can have your conversations indexed.

## All settings
"""

_TYPE_NAMES = {"text": "string", "list": "list of strings", "paths": "list of paths", "table": "table of strings"}


def reference() -> str:
    """Return the whole page as Markdown."""
    return _INTRODUCTION + "".join(_group(name) for name in GROUPS)


def _group(name: str) -> str:
    prefix = f"{name}." if name else ""
    rows = [
        _row(key, option)
        for key, option in OPTIONS.items()
        if key.startswith(prefix) and "." not in key.removeprefix(prefix)
    ]
    title, meaning = (f"`[{name}]`", GROUPS[name]) if name else ("Top level", "Sources and embedding provider.")
    head = ["| key | type | default | allowed | workspace file | meaning |", "|---|---|---|---|---|---|"]
    return "\n".join(["", f"### {title}", "", meaning, "", *head, *rows, ""])


def _row(key: str, option: Option) -> str:
    cells = (
        f"`{key}`",
        _TYPE_NAMES.get(option.kind, option.kind),
        "not set" if option.default is None else f"`{_toml(as_plain(option.default))}`",
        _allowed(option),
        _workspace(option),
        option.meaning,
    )
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _allowed(option: Option) -> str:
    if option.choices:
        return ", ".join(f"`{choice}`" for choice in option.choices)
    if option.form:
        return option.form
    return option.range_text.removeprefix(" from ").removeprefix(" of ")


def _workspace(option: Option) -> str:
    if isinstance(option.workspace, tuple):
        return "only " + " or ".join(f"`{_toml(as_plain(value))}`" for value in option.workspace)
    return {"yes": "yes", "no": "no", "inside": "inside it only"}[option.workspace]


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


if __name__ == "__main__":
    sys.stdout.write(reference())
