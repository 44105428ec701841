"""Decides which notes and conversations an audience may see.

A direct chat sees all of its agent's memory. A group sees neither `MEMORY.md` nor private notes, and of all
conversations only its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from notewell.errors import QueryError
from notewell.sources.front_matter import marked_private
from notewell.sources.transcripts import ARCHIVE, GROUPS, SESSION_ENDING, TOP
from notewell.sources.transcripts.session_ids import id_of_group, is_session_name, names_of
from notewell.types import Document

Chat = Literal["direct", "group"]
Citations = Literal["auto", "on", "off"]

PRIVATE_FILE = "memory.md"  # the curated memory, in whichever case it is written
PRIVATE_FOLDER = "private"  # `memory/private/` and any other folder of that name


@dataclass(frozen=True, slots=True)
class Audience:
    """Who hears the answer: one person, or a group whose own conversation may be named."""

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
        """Who it is, in one word, as entries and the trash keep it; empty for a direct chat."""
        if not self.is_group:
            return ""
        return "group" if self.session is None else f"group:{id_of_group(self.session)}"

    def may_see(self, document: Document) -> bool:
        """Say whether a document may be shown to this audience."""
        if not self.is_group:
            return True
        if document.stamp.source == "sessions":
            return document.stamp.path in self.own_transcripts
        return not document.private

    def may_see_transcript(self, path: str) -> bool:
        """Say whether a conversation may be shown to this audience."""
        return not self.is_group or path in self.own_transcripts


DIRECT = Audience()


def audience_of(chat: str | None, session: str | None, opened_for: Audience = DIRECT) -> Audience:
    """Return who listens; what is not said is as the memory was opened for.

    Raises QueryError for what cannot be, and for whoever would see more than those it was opened for: a group stays a
    group, and only a direct chat of no session may name one.
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
    """Say whether results carry citations: `auto` means in direct chats, where the paths are the reader's own."""
    return citations == "on" or (citations == "auto" and chat == "direct")


def is_private(path: str, text: str) -> bool:
    """Say whether a note is for its owner alone: by its name, its folder, or `private: true` in its front matter."""
    *folders, name = path.casefold().split("/")
    return name == PRIVATE_FILE or PRIVATE_FOLDER in folders or marked_private(text)
