"""Reads the front matter of a note: its settings, its day, and whether it marks the note as private."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date

MAX_LINES = 200  # a block longer than a screenful of settings is text between two thematic breaks
_CLOSERS = {"---": frozenset({"---", "..."}), "+++": frozenset({"+++"}), ";;;": frozenset({";;;"})}
_KEY = re.compile(r"""(?P<key>[^\W\d][\w .-]{0,60}?|"[^"]{1,60}"|'[^']{1,60}')[ ]*:(?:[ \t]+(?P<value>.*))?$""")
_ITEM = re.compile(r"[ \t]*-(?:[ \t]+|$)(?P<value>.*)$")
_COMMENT = re.compile(r"(?:^|[ \t]+)#.*$")
_LIST_PARTS = re.compile(r"""[ \t]*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,]+)""")
_ESCAPED = re.compile(r"\\(.)")
_BLOCK_STYLES = frozenset({"|", ">", "|-", ">-", "|+", ">+"})
# The date ends the name or is parted from the rest of it: 2026-11-150.md and 2026-11-15b.md are not dated.
_IN_NAME = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?=[-_ ]|\.[^.]*$|$)")
_CLOCK = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)? ?(?:[Zz]|[+-][0-9]{2}:?[0-9]{2})?"
_IN_FRONT_MATTER = re.compile(rf"([0-9]{{4}})(?:-([0-9]{{2}})-|/([0-9]{{2}})/)([0-9]{{2}})(?:[Tt ]{_CLOCK})?")


def split_front_matter(text: str) -> tuple[dict[str, str], int]:
    """Return the front matter and the 1-based line where the body begins; `({}, 1)` when there is none.

    Keys are in lower case, lists are joined by ", ". In doubt a block is not front matter: its text is then indexed
    like any other instead of being lost.
    """
    if not text.startswith("---"):
        return {}, 1
    lines = text.split("\n", MAX_LINES + 2)[: MAX_LINES + 2]
    if lines[0].rstrip() != "---":
        return {}, 1
    closing = next((i for i, line in enumerate(lines) if i and line.rstrip() in _CLOSERS["---"]), None)
    if closing is None:
        return {}, 1
    block = lines[1:closing]
    if not _looks_like_settings(block):
        return {}, 1
    return dict(_entries(block)), closing + 2


def _looks_like_settings(block: Sequence[str]) -> bool:
    """Tell settings from prose between two thematic breaks: every line at the margin must be one of a setting."""
    at_margin = [line for line in block if line.strip() and not line[0].isspace() and not line.startswith("#")]
    if not at_margin:
        return not any(line.strip() for line in block)
    return _KEY.match(at_margin[0]) is not None and all(
        _KEY.match(line) or _ITEM.match(line) or line[0] in "]}" for line in at_margin
    )


def _entries(block: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each key with its value; lines that follow a key and are not keys themselves belong to it."""
    key, value = "", ""
    rest: list[str] = []
    for line in block:
        found = _KEY.match(line)
        if found is None:
            rest.append(line)
            continue
        if key:
            yield key, _value(value, rest)
        key, value, rest = _unquoted(found["key"]).lower(), (found["value"] or "").strip(), []
    if key:
        yield key, _value(value, rest)


def _value(first: str, rest: Sequence[str]) -> str:
    following = [line for line in rest if line.strip() and not line.lstrip().startswith("#")]
    if first in _BLOCK_STYLES:
        return " ".join(line.strip() for line in following)
    if not first and following and all(_ITEM.match(line) for line in following):
        return ", ".join(_scalar(line.lstrip()[1:]) for line in following)
    return _scalar(" ".join([first, *(line.strip() for line in following)]))


def _scalar(value: str) -> str:
    value = value.strip()
    if value[:1] in {'"', "'"}:
        return _unquoted(value)
    value = _COMMENT.sub("", value).strip()
    if value.startswith("[") and value.endswith("]"):
        parts = (_unquoted(part.strip()) for part in _LIST_PARTS.findall(value[1:-1]))
        return ", ".join(part for part in parts if part)
    return value


def _unquoted(value: str) -> str:
    quote = value[:1]
    end = value.rfind(quote) if quote in {'"', "'"} else 0
    if end < 1:
        return value
    inner = value[1:end]
    return _ESCAPED.sub(r"\1", inner) if quote == '"' else inner.replace("''", "'")


# --- dates -------------------------------------------------------------------------------------


def note_date(path: str, metadata: Mapping[str, str]) -> date | None:
    """Return the day of a note: the date its file name begins with, or else the `date` of its front matter.

    A note without a date is evergreen.
    """
    return date_in_name(path) or date_in_front_matter(metadata)


def date_in_name(path: str) -> date | None:
    """Return the date a file name begins with (`2026-11-15.md`, `2026-11-15-slug.md`), in whichever folder it lies."""
    found = _IN_NAME.match(path, path.rfind("/") + 1)
    return _day(*found.groups()) if found else None


def date_in_front_matter(metadata: Mapping[str, str]) -> date | None:
    """Return the day that `date` names (`2026-03-14`, `2026/03/14`, with or without a time); None for other forms."""
    found = _IN_FRONT_MATTER.fullmatch(metadata.get("date", ""))
    return _day(found[1], found[2] or found[3], found[4]) if found else None


def _day(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:  # 2026-02-30 looks like a date and is none
        return None


# --- private notes -----------------------------------------------------------------------------

# Here YAML, TOML and JSON are parsed in full: in doubt a note is private. One that mentions neither `private` nor
# `visibility` is not parsed at all, so YAML is loaded for few notes. Keys count at any depth, twice given ones each,
# and every value of `private` that is not plainly a no.
_NO = frozenset({"false", "no", "n", "off", "0", "0.0"})
_MENTION = re.compile(r"private|visibility", re.IGNORECASE)
_INVISIBLE = "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
_HIDDEN = re.compile(f"[{_INVISIBLE}]+")
_BLANK = re.compile(rf"[\s{_INVISIBLE}]*")  # a byte order mark in the middle of joined files, too
_SAID = re.compile(rf"^[ \t{_INVISIBLE}]*[^\s#{_INVISIBLE}]", re.MULTILINE)  # anything but comments of YAML
_COMMENTS = re.compile(rf"(?:<!--.*?-->{_BLANK.pattern})+", re.DOTALL)  # before the front matter
# `%YAML 1.2`, comments and blank lines before the first line of a YAML document.
_DIRECTIVES = re.compile(r"(?:%.*\n|[ \t]*(?:#.*)?\r?\n)+(?=---)")
_OPENING = re.compile(r"(---|\+\+\+|;;;)(?:[ \t].*|[a-zA-Z]+[ \t]*)?$")  # some programs name the language: `---toml`
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|\n[ \t]*)", re.IGNORECASE)
# In what could not be read as front matter the wish is honoured all the same, where a line begins with it.
_WISH = re.compile(
    r"^[ \t]*(?:\{.*?|<!--[ \t]*|\?[ \t]+)?[\"']?"
    r"(?:private[\"']?\s*[:=]\s*(?:[!&]\S{0,60}\s+){0,3}[\"']?(?:true|yes|on|1)\b"
    r"|visibility[\"']?\s*[:=]\s*(?:[\"'\[-]\s*){0,3}private\b)",
    re.IGNORECASE | re.MULTILINE,
)
_WISH_IN_BRACES = re.compile(r"[\"']?private[\"']?\s*:\s*[\"']?(?:true|yes|on|1)\b", re.IGNORECASE)
# Above these a parser could take long (libyaml's time grows with the square of the depth): that is a doubt, too.
MOST_PARSED = 64 * 1024  # characters
MOST_BRACKETS = 500


def marked_private(text: str) -> bool:
    """Return whether the front matter of a note says that the note is for its owner alone."""
    text = _plain(text)
    comments = _COMMENTS.match(text)
    if comments is None:
        return _in_front_matter(text)
    return _WISH.search(comments[0]) is not None or _in_front_matter(text[comments.end() :])


def _in_front_matter(text: str) -> bool:
    """Look at a note from its first visible character on."""
    if text.startswith("{"):
        return _in_object(text)
    if text.startswith("%") and (directives := _DIRECTIVES.match(text)):
        text = text[directives.end() :]
    first, _, rest = text.partition("\n")
    opening = _OPENING.match(first.rstrip())
    if opening is None:
        return False
    language = first[3:].strip().lower() if first[3:4].isalpha() else ""
    # What follows the dashes on their line belongs to the document: `--- {private: true}`, `--- !!map`.
    block = _block(rest if language else f"{first[3:]}\n{rest}", _CLOSERS[opening[1]])
    if block is None:  # never closed: perhaps a thematic break, perhaps front matter that was cut off
        return _WISH.search(text) is not None
    if not block.isascii():  # `ｐｒｉｖａｔｅ：ｔｒｕｅ` and a key with a character in it that nobody sees
        block = unicodedata.normalize("NFKC", _HIDDEN.sub("", block))
    if not _MENTION.search(_ESCAPE.sub(_unescaped, block)):
        return False
    if len(block) > MOST_PARSED or sum(map(block.count, "[{")) > MOST_BRACKETS:
        return True
    kind = language or {"---": "yaml", "+++": "toml", ";;;": "json"}[opening[1]]
    return _says_so(_READERS.get(kind, _yaml_entries), block) or _WISH.search(block) is not None


def _plain(text: str) -> str:
    """Return a text from its first visible character on."""
    return text[_BLANK.match(text).end() :]  # type: ignore[union-attr]  # it matches an empty text, too


def _block(rest: str, closers: frozenset[str]) -> str | None:
    """Return the text up to the line that closes it; None when none does. Blocks that say nothing are passed over."""
    at = begins = 0
    while at < len(rest):
        ends = rest.find("\n", at)
        line = rest[at : ends if ends >= 0 else len(rest)]
        if line.rstrip() in closers:
            if _SAID.search(rest, begins, at):
                return rest[begins:at]
            begins = at + len(line) + 1
        at += len(line) + 1
    return None


def _unescaped(found: re.Match[str]) -> str:
    digits = found[1] or found[2] or found[3]
    try:
        return chr(int(digits, 16)) if digits else ""
    except (OverflowError, ValueError):
        return " "


def _in_object(text: str) -> bool:
    """Read a note that begins with a JSON object."""
    if not _MENTION.search(_ESCAPE.sub(_unescaped, text)):
        return False
    try:
        found, _ = json.JSONDecoder(object_pairs_hook=_Pairs).raw_decode(text)
    except (ValueError, RecursionError):  # perhaps a template (`{{ title }}`), perhaps JSON with a mistake
        return _WISH_IN_BRACES.search(text) is not None
    return any(_is_private(key, value) for key, value in _pairs_in(found))


def _says_so(entries: Callable[[str], Iterator[tuple[str, object]]], block: str) -> bool:
    try:
        return any(_is_private(key, value) for key, value in entries(block))
    except (ValueError, RecursionError):  # of which the errors of all three parsers are
        return True


def _is_private(key: str, value: object) -> bool:
    key = key.strip().casefold()
    said = value.strip().casefold() if isinstance(value, str) else str(value).casefold()
    return (key == "private" and said not in _NO) or (key == "visibility" and "private" in said)


# Each parser yields the keys with their values, those of inner tables, too.


class _Pairs(list[tuple[str, object]]):
    """A JSON object with the keys that were given twice."""


def _pairs_in(value: object) -> Iterator[tuple[str, object]]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping | _Pairs):
            pairs = list(each.items() if isinstance(each, Mapping) else each)
            yield from pairs
            waiting += [inner for _, inner in pairs]
        elif isinstance(each, list):
            waiting += each


def _toml_entries(block: str) -> Iterator[tuple[str, object]]:
    import tomllib

    from notewell.settings.load import DEEP_KEY

    if re.search(DEEP_KEY, block):
        raise ValueError("a key has too many parts")
    return _pairs_in(tomllib.loads(block))


def _json_entries(block: str) -> Iterator[tuple[str, object]]:
    block = block.strip()
    block = block if block.startswith("{") else f"{{{block}}}"  # between `;;;` the braces may be left out
    return _pairs_in(json.loads(block, object_pairs_hook=_Pairs))


def _yaml_entries(block: str) -> Iterator[tuple[str, object]]:
    """Follow the events of the parser: it is not recursive, and no tag of YAML makes it build an object."""
    import yaml  # costs 15 ms

    document = f"---{block}" if block[:1].isspace() else f"---\n{block}"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    named: dict[str, str] = {}  # scalars with an anchor
    # For each open mapping the key whose value comes next, for each list the key whose value it is.
    waiting: list[tuple[str | None, bool]] = []
    try:
        for event in yaml.parse(document, Loader=loader):
            if isinstance(event, yaml.CollectionEndEvent):
                waiting.pop()
            if not isinstance(event, yaml.NodeEvent):
                continue
            node = getattr(event, "value", named.get(event.anchor, _OTHER))  # of an alias what its anchor names
            if event.anchor and isinstance(event, yaml.ScalarEvent):
                named[event.anchor] = node
            key, is_list = waiting[-1] if waiting else ("", True)
            if key is None:
                waiting[-1] = (node, False)
            else:
                yield key, node
                if not is_list:
                    waiting[-1] = (None, False)
            if isinstance(event, yaml.MappingStartEvent):
                waiting.append((None, False))
            elif isinstance(event, yaml.CollectionStartEvent):
                waiting.append((key or "", True))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


_OTHER = "\0other"  # no scalar of YAML holds NUL
_READERS: dict[str, Callable[[str], Iterator[tuple[str, object]]]] = {
    "yaml": _yaml_entries,
    "toml": _toml_entries,
    "json": _json_entries,
}
