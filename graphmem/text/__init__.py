"""Pure text functions: name cleaning, query words, dates, redaction, and numbers in sentences."""


def counted(number: float, one: str, many: str | None = None) -> str:
    """Return a number with its noun: "1 fact", "1,200 facts", "0.5 days"."""
    return f"{number:,.15g} {one if number == 1 else many or one + 's'}"
