"""Takes personal data out of facts and summaries (spec: security); off unless it is turned on."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from graphmem.text.normalise import canonical


def _is_card(digits: str) -> bool:
    """Tell whether 13 to 19 digits pass the check of payment cards (Luhn)."""
    if not 13 <= len(digits) <= 19:
        return False
    doubled = [int(d) * (2 if i % 2 else 1) for i, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def _is_phone(digits: str) -> bool:
    return 9 <= len(digits) <= 15


_KINDS: tuple[tuple[str, re.Pattern[str], Callable[[str], bool]], ...] = (
    ("email", re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), lambda _: True),
    ("iban", re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"), lambda _: True),
    ("card", re.compile(r"\b\d(?:[ -]?\d){12,18}\b"), _is_card),
    ("ssn", re.compile(r"\b\d{3}-\d{2}-\d{4}\b"), lambda _: True),
    ("ip", re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b"), lambda _: True),
    ("phone", re.compile(r"(?<![\w.])(?:\+|00)?\(?\d[\d ()./-]{7,}\d\b"), _is_phone),
)


class PatternRedactor:
    """Replaces e-mail addresses, phone, card, account and social security numbers and IP addresses by their kind."""

    def redact(self, text: str, names: Collection[str]) -> str:
        """Return the text with what was found replaced, for example by ``[email]``.

        Parameters
        ----------
        text
            A fact or a summary.
        names
            Canonical names of the entities that it is about: they stay as they are.
        """
        for kind, pattern, holds in _KINDS:

            def replace(match: re.Match[str], kind: str = kind, holds: Callable[[str], bool] = holds) -> str:
                found = match[0]
                digits = re.sub(r"\D", "", found)
                return found if canonical(found) in names or not holds(digits) else f"[{kind}]"

            text = pattern.sub(replace, text)
        return text
