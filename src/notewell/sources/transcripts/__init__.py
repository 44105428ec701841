"""Past conversations as a source of memory: JSONL of several programs in, what people and assistants said out."""

TRANSCRIPTS_VERSION = 1  # raised whenever the same transcript could give other text; an older index is rebuilt
