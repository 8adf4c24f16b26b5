"""Pattern-based redaction of personal data and secrets, with checksums and without a model.

Each pattern takes linear time: quantifiers are possessive or bounded, and a run has only one possible start of a match.
The regex engine scans fast for a first character, so look-behinds follow it instead of preceding it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from ipaddress import IPv6Address
from typing import NamedTuple

from graphmem.text.normalize import canonical

Span = tuple[int, int]
"""Begin and end of the secret part of a match in the text."""

KINDS = ("key", "password", "email", "iban", "card", "ssn", "ip", "phone")


class _Rule(NamedTuple):
    kind: str
    pattern: re.Pattern[str]
    find: Callable[[re.Match[str]], Span | None]
    needs: tuple[str, ...] = ()
    """Substrings; every text with a match contains one of them, which is a fast pre-check."""


def _whole(match: re.Match[str]) -> Span:
    return match.span()


def _first_group(match: re.Match[str]) -> Span:
    return match.span(1)


def _before(match: re.Match[str], characters: int) -> str:
    return match.string[max(0, match.start() - characters) : match.start()].lower()


def _digits(text: str) -> str:
    """Return the digits of a text, converted to ASCII."""
    if text.isascii():
        return text.encode().translate(None, _NO_DIGITS).decode()  # same result, ten times as fast
    return "".join(str(int(c)) for c in text if c.isdecimal())


_NO_DIGITS = bytes(set(range(128)) - set(b"0123456789"))
_UUID = re.compile(r"(?<![^\W_])[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![^\W_])")
_LENGTH_OF_UUID = 36


def _begins_in_uuid(match: re.Match[str]) -> bool:
    """Return whether a match begins in a UUID, whose digits may look like those of an account or a phone."""
    at = match.start()
    near = _UUID.finditer(match.string, max(0, at - _LENGTH_OF_UUID), at + _LENGTH_OF_UUID + 1)
    return any(uuid.start() <= at < uuid.end() for uuid in near)


# Keys and tokens ------------------------------------------------------------------------------------

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:[^-]++|-(?!----))*+-----END [A-Z ]{0,40}-----|[A-Za-z0-9+/=\s\\]*+)"
)
_TOKEN = re.compile(r"\w(?<![\w.-].)[\w.-]{14,}[\w-]")
_PREFIXES = tuple(
    "sk- sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ whsec_ ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- "
    "xoxb- xoxp- xoxa- xoxe- xoxr- xoxs- xapp- AIza ya29. GOCSPX- eyJ hvs. SG. npm_ pypi- hf_ r8_ gsk_ pplx- xai- "
    "nvapi- dop_v1_ shpat_ shpss_ lin_api_ dckr_pat_ ATATT3x PMAK- tvly- ntn_".split()
)
_ACCOUNT_KEY = re.compile(  # of AWS, Twilio, Mailgun
    r"(?:AKIA|ASIA|AIDA|AROA|ABIA|ACCA)[A-Z0-9]{16}|(?:SK|AC|key-)[0-9a-f]{32}"
)
_TELEGRAM_KEY = re.compile(r"\d(?<!\d.)\d{7,9}:AA[\w-]{33}")
_SLACK_HOOK = re.compile(r"hooks\.slack\.com/services/[\w/]++")
_AUTHORIZATION = re.compile(r"[Bb](?:earer|asic|EARER|ASIC)\s{1,3}([\w.~+/-]{12,}=*+)")


def _token(match: re.Match[str]) -> Span | None:
    token = match[0]
    if _ACCOUNT_KEY.fullmatch(token):
        return match.span()
    return match.span() if token.startswith(_PREFIXES) and any(map(str.isdigit, token)) else None


def _credentials(match: re.Match[str]) -> Span | None:
    return match.span(1) if _is_mixed(match[1]) else None


def _is_mixed(value: str) -> bool:
    """Return whether a value looks like a secret: letters mixed with digits or symbols."""
    return _LETTER.search(value) is not None and _NO_LETTER.search(value, 0, len(value) - 1) is not None


_LETTER, _NO_LETTER = re.compile(r"[^\W\d_]"), re.compile(r"[\d!#$%&*+/=?@^~]")


# Passwords ------------------------------------------------------------------------------------------

_KEY = r"(?=[ _-]?(?:access[ _-]?)?(?:key|token|secret))[ _-]?(?:access[ _-]?)?(?:key|token|secret)"
_WORD = (  # lower case, each with a distinct first letter: see the module docstring
    "password|passwort|passphrase|pass phrase|seed phrase|recovery phrase|passcode|passwd|kennwort|pwd|contraseña|"
    rf"contrasena|senha|mot de passe|пароль|pass|pw|pin|secret{_KEY}|secret|token|api{_KEY}|access{_KEY}|account{_KEY}|"
    rf"auth{_KEY}|private{_KEY}|client{_KEY}|refresh{_KEY}"
)
_SURE = frozenset(_WORD.partition("|pass|")[0].split("|"))
_IS = r"(?:is|was|are|ist|war|lautet|es|est|é)\b"
_VALUE = r"""(?:"([^"\n]{1,200})"|'([^'\n]{1,200})'|“([^”\n]{1,200})”|`([^`\n]{1,200})`|([^\s"'<>`]{2,200}))"""
_SAID = re.compile(
    rf"({_WORD})(?P<plural>s)?(?: (?:code|number|no\.?))?"
    rf"(?:(?: (?:for|to|of|on|für|von|para|de|pour) [\w' -]{{1,30}}?)?"
    rf"(?:[\"'\]]?\s{{0,3}}(?P<sign>=>|:=|[=:→>])\s{{0,3}}|'s\s|\s{_IS}:?\s(?:now\s|still\s|just\s)?)|(?P<bare>\s))"
    rf"(?={_VALUE})"
)
_NO_PASSWORD = frozenset(  # words after "the password is" that are not passwords
    "a about added again all allowed already also an and any asked at bad based be because been being blank "
    "broken but by can case changed chosen compromised correct could default different do does easy either empty "
    "encrypted entered expired expiring fine for from generated gone good guessable had hard has hashed have he "
    "her here hidden his i if in incorrect insecure invalid is it its kept leaked likely long longer lost manager "
    "me missing my necessary needed never no none not now null of ok old on only optional or our out outdated "
    "policy protected public required requirements reset right safe same saved secret secure sent set shared she "
    "short shown so some stale still stolen stored strong stuck that the their there they this to too true "
    "unchanged unknown unsafe up updated used valid very weak what when where which who why will with working "
    "wrong you your".split()
)
_URL_PASSWORD = re.compile(r"://[^\s/:@]{0,80}:([^\s/@]{1,200})@")


_ENDS_PHRASE = _NO_PASSWORD | frozenset(
    "aber ask et für into login mais o oder ou over pero please server tell than thank thanks then und under use user "
    "username using y и или но".split()
)
"""Words that a password of several words ends before."""
_ARTICLES = frozenset("a an my our the".split())
_NEXT_WORD = re.compile(r" {1,3}([^\W\d_]{1,40}(?:[-'][^\W\d_]{1,40})?)(?=[\s.,;!?)\]}]|\Z)")
_MOST_WORDS = 24
_LIST = re.compile(r"[^\s,;]{2,200}(?:(?:, ?(?:and |or )?| and | or )[^\s,;]{2,200}){0,20}")
_LINE, _CLAUSE, _FIELD = (re.compile(rf"[^{ends}]{{1,200}}") for ends in (r"\n", r"\n.,;!?", r"\n;\"'<>`"))
_SAID_CJK = re.compile(
    r"(?:密码|密碼|口令|パスワード|暗証番号|비밀번호)\s?(?:[是为為はが은는])?\s?(?P<sign>[:：=＝])?\s?[\"'“「『]?([!-~]{3,200})"
)


def _said(match: re.Match[str]) -> Span | None:
    """Return the value after a word for a password or key; an ambiguous word requires a value that looks like one."""
    group, word, sign = match.lastindex or 0, match[1], match["sign"]
    text, value, begin = match.string, match[group], match.start(group)
    quoted, before = group != match.re.groups, text[max(0, match.start() - 1) : match.start()]
    if not quoted:
        value = value.rstrip(".,;)]}" if sign else ".,;:!?)]}>")
    if not value or value.startswith("[") or (before == "[" and text.startswith("password]", match.start())):
        return None  # a placeholder
    is_key = _is_key(word)
    if word not in _SURE and (match["plural"] or (before.isalpha() and not (is_key and sign))):
        return None  # the end of another word, such as "spin"
    if match["plural"] and (match["bare"] or not any(map(str.isalnum, value))):
        return None
    end = begin + len(value)
    if word == "pin":
        is_pin = value.isdigit() and 3 <= len(value) <= 8 and not (match["bare"] and value.startswith(("19", "20")))
        return (begin, end) if is_pin else None
    if is_key and sign and not quoted:
        value = value.partition(";")[0]  # of a connection string
        end = begin + len(value)
    if (word not in _SURE or match["bare"] or (match["plural"] and not sign)) and not (
        len(value) >= (8 if is_key else 5) and _is_mixed(value)
    ):
        return None
    return (begin, end) if quoted or is_key or match["bare"] else _unquoted(match, value, (begin, end))


def _unquoted(match: re.Match[str], value: str, span: Span) -> Span | None:
    """Return where a password without quotes ends: it may have several words, or be one of a list."""
    (begin, end), text, is_plural = span, match.string, match["plural"] is not None
    if match["sign"] == "=" and text[max(0, match.start() - 1)] == ";":  # a connection string
        return begin, _end(_FIELD, text, begin)
    if match[1].endswith("phrase"):
        if match["sign"]:
            return begin, _end(_LINE, text, begin)
        return None if value in _NO_PASSWORD - _ARTICLES else (begin, _end(_CLAUSE, text, begin))
    if is_plural and value not in _NO_PASSWORD:
        return begin, _end(_LIST, text, begin)
    further = 0
    while value.replace("-", "").isalpha() and further < _MOST_WORDS and (word := _NEXT_WORD.match(text, end)):
        if word[1] in _ENDS_PHRASE:
            break
        end, further = word.end(), further + 1
    if value not in _NO_PASSWORD:
        return begin, end
    ends_there = text[end : end + 1] in ("", "\n", ".")  # "Password: correct horse battery staple"
    return (begin, end) if match["sign"] and further >= 3 and ends_there else None


def _end(until: re.Pattern[str], text: str, begin: int) -> int:
    """Return where the text ends that a pattern matches, without punctuation and blanks."""
    found = until.match(text, begin)
    return begin if found is None else begin + len(found[0].rstrip(" .,;:!?)]}"))


def _said_in_cjk(match: re.Match[str]) -> Span | None:
    """Return the ASCII value after a Chinese, Japanese or Korean word for a password."""
    value = match[2].rstrip(".,;:!?)]}\"'")
    is_named = match["sign"] or match[0][: -len(match[2])].rstrip("\"'“「『 ").endswith(tuple("是为為はが은는"))
    return (match.start(2), match.start(2) + len(value)) if is_named or _is_mixed(value) else None


def _is_key(word: str) -> bool:
    return word.endswith(("key", "token")) or (word != "secret" and word.endswith("secret"))


# E-mail ---------------------------------------------------------------------------------------------

_LOCAL = r"\w.+%'=~&*!#$^|-"
_EMAIL = re.compile(rf"[{_LOCAL}](?<![{_LOCAL}].)[{_LOCAL}]*+[@＠﹫]\w[\w-]*+\.[\w.-]*\w")
_ENCODED = re.compile(r"[\w+](?<![\w.+-].)[\w.+-]*+%40\w[\w-]*+\.[\w.-]*\w")
_AT, _DOT = (rf"(?:\s?[\[({{<]\s?{word}\s?[\])}}>]\s?|\s{word}\s)" for word in ("at", "dot"))
_SPELLED = re.compile(
    rf"[\w+](?<![{_LOCAL}].)[\w.+-]*+{_AT}[\w-]++(?:{_DOT}[\w-]++){{0,3}}{_DOT}"
    r"(?:com|org|net|edu|gov|io|ai|co|info|biz|me|dev|app|eu|us|uk|de|fr|es|it|nl|ch|at|be|pl|se|no|dk|in|jp|au|br|ca)\b",
    re.IGNORECASE,
)


def _email(match: re.Match[str]) -> Span | None:
    """Return the address without trailing labels that can't end a domain; None for matches such as "left-pad@1.3.0"."""
    begin, end = match.span()
    begin += len(match[0]) - len(match[0].lstrip("'*&|=!"))
    text = match.string
    first_dot = text.find(".", max(begin, text.rfind("@", begin, end)), end)
    while not text[(dot := text.rfind(".", begin, end)) + 1 : end].isalpha() or end - dot < 3:
        if dot <= first_dot:
            return None
        end = dot
    is_repository = match[0].startswith("git@") and text.startswith(":", end)
    return None if is_repository else (begin, end)


# Accounts -------------------------------------------------------------------------------------------

_IBAN = re.compile(r"[A-Za-z](?<![^\W_].)[A-Za-z][0-9]{2}(?:[ -]?[A-Za-z0-9]{4}){2,7}+(?:[ -]?[A-Za-z0-9]{1,3})?")
_IBAN_LENGTHS = {
    country: length
    for length, countries in {
        15: "NO", 16: "BE", 18: "DK FI FO GL NL SD", 19: "MK SI", 20: "AT BA EE KZ LT LU MN XK", 21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ OM SO TL", 24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST", 26: "IS TR", 27: "BI DJ FR GR IT MC MR SM", 28: "AL AZ BY CY DO GT HU LB NI PL SV",
        29: "BR EG PS QA UA", 30: "JO KW MU YE", 31: "MT SC", 32: "LC", 33: "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip
_IN_IBAN = {character: str(int(character, 36)) for character in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_SEP = " .\u00a0-"
_CARD = re.compile(
    rf"\d(?<!\d.)(?<!\d\..)(?:\d{{12,18}}|\d{{3}}[{_SEP}]{{1,2}}(?:\d{{4}}[{_SEP}]{{1,2}}\d{{4}}[{_SEP}]{{1,2}}\d{{1,7}}|"
    rf"\d{{6}}[{_SEP}]{{1,2}}\d{{4,5}}))(?!\d)"
)
_ISSUED = re.compile(  # prefixes and lengths of each issuer
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7]|35)\d{14}|3[47]\d{13}|3[0689]\d{12}|(?:5[06-8]|6)\d{12,18}"
)
_DOUBLED = bytes.maketrans(b"0123456789", b"0246813579")  # digit sum of the doubled digit
_SSN = re.compile(r"(\d(?<![\w-].)\d\d)([ -]?)(\d\d)\2(\d{4})(?![\w-])")


def _iban(match: re.Match[str]) -> Span | None:
    length = _IBAN_LENGTHS.get(match[0][:2].upper(), 99)
    account = match[0].replace(" ", "").replace("-", "")[:length].upper()
    if len(account) < length or int("".join(map(_IN_IBAN.__getitem__, account[4:] + account[:4]))) % 97 != 1:
        return None
    if _begins_in_uuid(match):
        return None
    places = [place for place, c in enumerate(match[0]) if c not in " -"]
    return match.start(), match.start() + places[length - 1] + 1


def _card(match: re.Match[str]) -> Span | None:
    digits = _digits(match[0])
    if not _ISSUED.fullmatch(digits):
        return None
    codes = digits.encode()
    total = sum(codes[::-2]) + sum(codes[-2::-2].translate(_DOUBLED)) - len(codes) * ord("0")
    return match.span() if total % 10 == 0 and not _begins_in_uuid(match) else None


def _ssn(match: re.Match[str]) -> Span | None:
    area, separator, group, serial = match.groups()
    if area in ("000", "666") or area[0] == "9" or group == "00" or serial == "0000":
        return None
    return match.span() if separator == "-" or re.search(r"\bssn\b|\bsocial\b", _before(match, 40)) else None


# Addresses of machines ------------------------------------------------------------------------------

_IP = re.compile(r"[0-9A-Fa-f:](?<![\w.:].)[0-9A-Fa-f.:]{4,44}(?!\w)")
_VERSION = re.compile(r"(?:version|release|chapter|section|v|build)\W{0,2}$")


def _ip(match: re.Match[str]) -> Span | None:
    found = match[0].rstrip(".") if match[0].endswith("::") else match[0].rstrip(".:")
    if found.count(".") == 3 and found.count(":") == 1:
        found = found.partition(":")[0]  # the port is kept
    span = (match.start(), match.start() + len(found))
    if ":" not in found:
        parts = found.split(".")
        is_address = len(parts) == 4 and all(len(p) < 4 and p.isdecimal() and int(p) < 256 for p in parts)
        return span if is_address and not _VERSION.search(_before(match, 12)) else None
    if found.count(":") < 2 or len(found) < 6 or not any(map(str.isdigit, found)):
        return None  # abc::def is an identifier in source code
    try:
        IPv6Address(found)
    except ValueError:
        return None
    return span


# Phone numbers --------------------------------------------------------------------------------------

_GAP = " \u00a0\u2009\u202f/.()\u2010-\u2013-"
_NO_PART = r"(?<!\w.)(?<!\d[.,:/-].)"  # not the end of another number
_PHONE = re.compile(rf"[+(\d]{_NO_PART}(?<!\d[{_GAP}].)(?=[ (-]{{0,2}}\d)[\d{_GAP}]{{5,28}}\d(?![\w]|[-.,:/]\d)")
_AMONG_NUMBERS = re.compile(  # forms recognized inside a sequence of numbers
    rf"[+(2-9]{_NO_PART}(?:(?<=\()[2-9]\d\d\) ?[2-9]\d\d[ .-]\d{{4}}|(?<=\d)\d\d[ .-][2-9]\d\d[ .-]\d{{4}}|"
    rf"(?<=\+)\d[\d{_GAP}]{{6,16}}\d)(?![\w]|[-.,:/]\d)"
)
_PLAIN_PHONE = re.compile(
    rf"\+ ?[\d{_GAP}]+"
    rf"|00[1-9][\d{_GAP}]{{8,}}"
    r"|(?:1[ .-])?(?:\([2-9]\d\d\) ?|[2-9]\d\d[ .-])[2-9]\d\d[ .-]\d{4}"
    r"|\(\d{2,5}\) ?\d[\d -]{4,12}\d"
    r"|[78] ?\(\d{3}\) ?\d{3}[ -]?\d\d[ -]?\d\d"
    r"|0[1-9]\d{0,4}[ /-]\d[\d /-]{3,14}\d"
)
_DATE = re.compile(
    r"(?<!\d)(?:19|20)\d\d[-./ ](?:0?[1-9]|1[0-2])[-./ ]\d\d?(?!\d)"
    r"|(?<!\d)\d\d?[-./]\d\d?[-./](?:19|20)\d\d(?!\d)|(?:19|20)\d\d ?- ?(?:19|20)\d\d"
)
_THOUSANDS = re.compile(r"\d{1,3}(?:[ .]000)+|\d{1,3}(?:\.\d{3})+")
_ABOUT_PHONES = re.compile(
    r"\b(?:phones?|tel|telephone|telefon\w*|telefone|téléphone|mobile?|móvil|movil|cell|cellphone|handy\w*|fax|whatsapp|"
    r"signal|sms|text(?: me)?|call(?: me)?|dial|ring|numéro|número|landline|телефон\w*|phone ?(?:number|no))\b"
)


def _phone(match: re.Match[str]) -> Span | None:
    found, digits = match[0], _digits(match[0])
    if not 7 <= len(digits) <= 15 or len(found) > len(digits) + 9:
        return None
    if _DATE.search(found) or _THOUSANDS.fullmatch(found) or _begins_in_uuid(match):
        return None
    if _PLAIN_PHONE.fullmatch(found) and len(digits) >= 8:
        return match.span()
    after = match.string[match.end() : match.end() + 30].partition("\n")[0].lower()
    said = _ABOUT_PHONES.search(_before(match, 30).rpartition("\n")[2]) or _ABOUT_PHONES.search(after)
    return match.span() if said and not digits.startswith(("978", "979")) else None


def is_placeholder(name: str, text: str) -> bool:
    """Return whether a name extracted from a text is one of its placeholders or contains a part of one."""
    bare = name.strip("[] ").lower()
    return (bare in KINDS and f"[{bare}]" in text) or _PIECE.search(name.lower()) is not None


_PIECE = re.compile(rf"\[ ?(?:{'|'.join(KINDS)})\b(?!\]-)")  # except in a name with a digest


_RULES = (
    _Rule("key", _PRIVATE_KEY, _whole, ("PRIVATE KEY",)),
    _Rule("key", _TOKEN, _token),
    _Rule("key", _TELEGRAM_KEY, _whole, (":AA",)),
    _Rule("key", _SLACK_HOOK, _whole, ("hooks.slack.com",)),
    _Rule("key", _AUTHORIZATION, _credentials),
    _Rule("password", _URL_PASSWORD, _first_group, ("://",)),
    _Rule("password", _SAID, _said),
    _Rule("password", _SAID_CJK, _said_in_cjk, ("密", "口令", "パスワ", "暗証", "비밀")),
    _Rule("email", _EMAIL, _email, tuple("@＠﹫")),
    _Rule("email", _ENCODED, _whole, ("%40",)),
    _Rule("email", _SPELLED, _whole, ("dot", "Dot", "DOT")),
    _Rule("iban", _IBAN, _iban),
    _Rule("card", _CARD, _card),
    _Rule("ssn", _SSN, _ssn),
    _Rule("ip", _IP, _ip),
    _Rule("phone", _PHONE, _phone),
    _Rule("phone", _AMONG_NUMBERS, _whole),
)


class PatternRedactor:
    """Redactor of e-mail and IP addresses, phone, card, account and social security numbers, passwords and keys.

    docs/how-to/privacy.md lists the kinds and the recall of each. Only patterns are matched: names of people, postal
    addresses and dates of birth are kept.
    """

    def redact(self, text: str, names: Collection[str]) -> str:
        """Return the text with each match replaced by its kind, for example ``[email]``.

        Parameters
        ----------
        text
            Any text.
        names
            Canonical names of the entities of the text, which are kept.
        """
        for rule in _RULES:
            text = _applied(rule, text, names)
        return text


def _applied(rule: _Rule, text: str, names: Collection[str]) -> str:
    if rule.needs and not any(needed in text for needed in rule.needs):
        return text
    read = _lowered(text) if rule.pattern is _SAID else text
    done: list[str] = []
    at = begin = 0
    while match := rule.pattern.search(read, begin):
        span = rule.find(match)
        if span is None or (names and canonical(text[slice(*span)]) in names):
            begin = match.start() + 1  # a rejected match may end with a valid one
            continue
        kind = "key" if rule.pattern is _SAID and _is_key(match[1]) else rule.kind
        done += text[at : span[0]], f"[{kind}]"
        at = begin = span[1]
    return "".join((*done, text[at:])) if done else text


def _lowered(text: str) -> str:
    """Return a text in lower case with all character positions unchanged."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(c if len(c.lower()) > 1 else c.lower() for c in text)
