"""Turns text into terms, redacts secrets, and fences recalled passages."""


def valid_unicode(text: str) -> str:
    """Return `text` with lone surrogates replaced, which no database, file, tokenizer or provider accepts."""
    return text.encode("utf-8", "replace").decode()
