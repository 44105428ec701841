"""Decides which notes and conversations an audience may see.

A direct chat sees everything. A group sees neither `MEMORY.md` nor private notes, and only its own conversation.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from notewell.errors import QueryError
from notewell.sources.transcripts import ARCHIVE, GROUPS, SESSION_ENDING, TOP, id_of_group, is_session_name, names_of

Chat = Literal["direct", "group"]
Citations = Literal["auto", "on", "off"]

PRIVATE_FILE = "memory.md"  # the curated memory, in whichever case it is written
PRIVATE_FOLDER = "private"  # `memory/private/` and any other folder of that name


@dataclass(frozen=True, slots=True)
class Audience:
    """Who reads the answer: one person, or a group, perhaps with a conversation of its own."""

    chat: Chat = "direct"
    session: str | None = None

    @property
    def is_group(self) -> bool:
        return self.chat == "group"

    @property
    def own_transcripts(self) -> frozenset[str]:
        """The stored paths under which the session store keeps a group's conversation."""
        if self.session is None:
            return frozenset()
        return frozenset(
            f"{TOP}/{folder}{GROUPS}/{name}{SESSION_ENDING}"
            for folder in ("", f"{ARCHIVE}/")
            for name in names_of(self.session)
        )

    @property
    def label(self) -> str:
        """A label for entries and the trash; empty for a direct chat."""
        if not self.is_group:
            return ""
        return "group" if self.session is None else f"group:{id_of_group(self.session)}"

    def may_see_transcript(self, path: str) -> bool:
        """Return whether a conversation may be shown to this audience."""
        return not self.is_group or path in self.own_transcripts


DIRECT = Audience()


def audience_of(chat: str | None, session: str | None, opened_for: Audience = DIRECT) -> Audience:
    """Return the audience of a call, by default that the memory was opened for.

    Raises QueryError for invalid values, and for an audience that would see more: a group stays a group, and only a
    direct chat without a session may choose one.
    """
    kind = opened_for.chat if chat is None else chat
    if kind not in get_args(Chat):
        raise QueryError(f"there is no chat of the kind {kind!r}", hint="use direct or group")
    own = opened_for.session if session is None else session
    if own is not None and not is_session_name(own):
        raise QueryError(f"{own!r} is not a session id", hint="`notewell sessions list` shows them")
    if opened_for.is_group and kind != "group":
        raise QueryError("this memory was opened for a group", hint="open one for the direct chat")
    if own != opened_for.session and (opened_for.is_group or opened_for.session is not None):
        whose = f"the session {opened_for.session!r}" if opened_for.session else "a group without a session"
        raise QueryError(f"this memory was opened for {whose}, not for {own!r}", hint="open one for that session")
    return Audience("group" if kind == "group" else "direct", own)


def shows_citations(citations: Citations, chat: Chat) -> bool:
    """Return whether results carry citations; `auto` means in direct chats."""
    return citations == "on" or (citations == "auto" and chat == "direct")


# --- private notes ---------------------------------------------------------------------------------

# YAML, TOML and JSON are fully parsed here, and in doubt a note is private. Notes that mention neither `private` nor
# `visibility` are not parsed, so YAML is rarely imported. Keys count at any depth, duplicates included, and every value
# of `private` that is not clearly negative means yes.
_CLOSERS = {"---": frozenset({"---", "..."}), "+++": frozenset({"+++"}), ";;;": frozenset({";;;"})}
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
# The mark is honoured even in text that is not valid front matter, at the beginning of a line.
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


def is_private(path: str, text: str) -> bool:
    """Return whether a note is private: by its name, its folder, or `private: true` in its front matter."""
    *folders, name = path.casefold().split("/")
    return name == PRIVATE_FILE or PRIVATE_FOLDER in folders or marked_private(text)


def marked_private(text: str) -> bool:
    """Return whether the front matter marks a note as private."""
    text = _BLANK.sub("", text, count=1)
    comments = _COMMENTS.match(text)
    if comments is None:
        return _in_front_matter(text)
    return _WISH.search(comments[0]) is not None or _in_front_matter(text[comments.end() :])


def _in_front_matter(text: str) -> bool:
    """Check a note from its first visible character on."""
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
    if block is None:  # never closed: a thematic break, or truncated front matter
        return _WISH.search(text) is not None
    if not block.isascii():  # `ｐｒｉｖａｔｅ：ｔｒｕｅ` and a key with a character in it that nobody sees
        block = unicodedata.normalize("NFKC", _HIDDEN.sub("", block))
    if not _MENTION.search(_ESCAPE.sub(_unescaped, block)):
        return False
    if len(block) > MOST_PARSED or sum(map(block.count, "[{")) > MOST_BRACKETS:
        return True
    kind = language or {"---": "yaml", "+++": "toml", ";;;": "json"}[opening[1]]
    return _says_so(_READERS.get(kind, _yaml_entries), block) or _WISH.search(block) is not None


def _block(rest: str, closers: frozenset[str]) -> str | None:
    """Return the text up to the closing line; None if there is none. Empty blocks are skipped."""
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
    except (ValueError, RecursionError):  # the base of all three parsers' errors
        return True


def _is_private(key: str, value: object) -> bool:
    key = key.strip().casefold()
    said = value.strip().casefold() if isinstance(value, str) else str(value).casefold()
    return (key == "private" and said not in _NO) or (key == "visibility" and "private" in said)


# Each parser yields all keys with their values, also those of nested tables.


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
    """Follow the parser's events, which needs no recursion and builds no objects."""
    import yaml  # costs 15 ms

    document = f"---{block}" if block[:1].isspace() else f"---\n{block}"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    named: dict[str, str] = {}  # scalars with an anchor
    # The key of the next value for each open mapping, and the key of each open list.
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
