"""Text of notes in, what the memory tool shows or writes of it out; worded as the SDK's own tool words it."""

from __future__ import annotations

from collections.abc import Sequence

from notewell.agents.adapters.memory_paths import RefusedError
from notewell.text.fences import strip_fenced
from notewell.text.redaction import redact

MOST_LINES = 999_999  # as the SDK's own tool, whose line numbers are six digits wide
NUMBER_WIDTH = len(str(MOST_LINES))
MOST_SHOWN = 50  # line numbers of places that are not unique; more of them help nobody


def writable_text(text: object) -> tuple[str, str]:
    """Return the text as it may be written, and what to tell about that: no secrets, no recalled text, no NUL."""
    if not isinstance(text, str):
        raise RefusedError(f"The text must be given as a string, got: {type(text).__name__}")
    own = strip_fenced(text)
    cleaned = redact(own.replace("\0", "").encode("utf-8", "replace").decode())
    told = "" if own == text else "\nNote: recalled memory was left out of what was written."
    if cleaned.found:
        kinds = ", ".join(dict.fromkeys(found.kind for found in cleaned.found))
        told += f"\nNote: hidden before it was written: {kinds}."
    return cleaned.text, told


def line_view(path: str, text: str, view_range: Sequence[int] | None) -> str:
    """Return the lines of a note with their numbers, all or those of the range; -1 is the end."""
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        raise RefusedError(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first, last = 1, len(lines)
    if view_range:
        if len(view_range) != 2 or not all(isinstance(number, int) for number in view_range):
            raise RefusedError(f"Invalid `view_range` parameter: {view_range}. It should be [first_line, last_line].")
        first = max(1, view_range[0])
        last = len(lines) if view_range[1] == -1 else min(view_range[1], len(lines))
        if first > last:
            raise RefusedError(
                f"Invalid `view_range` parameter: {list(view_range)}. {path} has the lines 1 to {len(lines)}."
            )
    numbered = _numbered(lines, first, last)
    return f"Here's the content of {path} with line numbers:\n{numbered}"


def replaced(content: str, old: object, new: str, path: str) -> tuple[str, str]:
    """Return the content with its one `old` replaced, and the lines around it for the model."""
    if not isinstance(old, str) or not old:
        raise RefusedError("No replacement was performed, `old_str` is empty. Say which text is to be replaced.")
    count = content.count(old)
    if count == 0:
        raise RefusedError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if count > 1:
        raise RefusedError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
            f"{_places_of(content, old)}. Please ensure it is unique"
        )
    at = content.index(old)
    changed = content[:at] + new + content[at + len(old) :]
    line = content.count("\n", 0, at) + 1
    lines = changed.split("\n")
    around = _numbered(lines, max(1, line - 2), min(len(lines), line + 2))
    return (
        changed,
        f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{around}",
    )


def inserted(content: str, behind: object, text: str, path: str) -> tuple[str, str]:
    """Return the content with text put behind a line, and the answer for the model."""
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not isinstance(behind, int) or isinstance(behind, bool) or not 0 <= behind <= len(lines):
        raise RefusedError(
            f"Invalid `insert_line` parameter: {behind}. It should be within the range [0, {len(lines)}]."
        )
    lines.insert(behind, text.rstrip("\n"))
    changed = "\n".join(lines)
    return changed if changed.endswith("\n") else f"{changed}\n", f"The file {path} has been edited."


def size_text(size: int) -> str:
    """Return a size in bytes as people read it: 0B, 812B, 1.5K, 2M."""
    if size == 0:
        return "0B"
    power = min((size.bit_length() - 1) // 10, 3)
    scaled = size / 1024**power
    return f"{int(scaled) if scaled == int(scaled) else f'{scaled:.1f}'}{'BKMG'[power]}"


def _numbered(lines: Sequence[str], first: int, last: int) -> str:
    return "\n".join(f"{number:>{NUMBER_WIDTH}}\t{lines[number - 1]}" for number in range(first, last + 1))


def _places_of(content: str, old: str) -> str:
    shown: list[str] = []
    at, line = -1, 1
    while len(shown) <= MOST_SHOWN:
        found = content.find(old, at + 1)
        if found < 0:
            return ", ".join(shown)
        line += content.count("\n", max(at, 0), found)
        shown.append(str(line))
        at = found
    return f"{', '.join(shown[:MOST_SHOWN])} and more"
