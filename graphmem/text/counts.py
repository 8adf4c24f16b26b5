"""Numbers in sentences."""


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: "1 fact", "1,200 facts"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
