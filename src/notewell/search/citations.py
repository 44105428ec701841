"""Where a hit stands, as text a reader can follow."""


def cite(path: str, first_line: int, last_line: int) -> str:
    """Return `memory/x.md#L5-L9`, or `memory/x.md#L5` for a single line."""
    span = f"L{first_line}" if first_line == last_line else f"L{first_line}-L{last_line}"
    return f"{path}#{span}"
