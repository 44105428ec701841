"""Past conversations as a source of memory: the transcripts of several programs, and the session store's own files."""

TRANSCRIPTS_VERSION = 2  # raised whenever the same transcript could give other text; an older index is rebuilt

# The folder of the session store, as it is stored: chats and groups, each also below `archive/`.
TOP = "sessions"
CHATS, GROUPS, ARCHIVE = "chats", "groups", "archive"
CORRUPT = "damaged"  # files that could not be read, as they were
REGISTRY = "registry.json5"  # the list of sessions: not a conversation
SESSION_ENDING = ".json5"
