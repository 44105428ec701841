"""Turns text into terms, and takes secrets and recalled passages out of it."""


def valid_unicode(text: str) -> str:
    """Return `text` with halves of surrogate pairs replaced: no database, file, tokenizer or provider takes them."""
    return text.encode("utf-8", "replace").decode()
