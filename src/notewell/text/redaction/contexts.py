"""Finds secrets by what stands around them: commands, files and headers, and names such as `password` or `api_key`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from notewell.text.redaction.values import Span, is_placeholder, looks_chosen, looks_like_password, looks_random

_QUOTE = r"\\{0,3}[\"'`]?"
_REACH = 400  # characters behind a command in which its options are looked for


def _is_given(value: str) -> bool:
    """Say whether a value is no placeholder and no number."""
    return not is_placeholder(value) and not value.replace(".", "").isdigit()


def _is_base64(value: str) -> bool:
    return not is_placeholder(value) and (looks_random(value) or value.endswith("="))


def _is_seed(value: str) -> bool:
    """Say whether this is a seed phrase: 12 to 24 words, none of those that every sentence has."""
    words = value.replace(",", " ").split()
    return len(words) in {12, 15, 18, 21, 24} and not _OF_SENTENCES & set(words)


_OF_SENTENCES = frozenset("the and for are was not your has had its his her our with from been were".split())


@dataclass(frozen=True)  # no slots: patterns are compiled when first needed
class Context:
    """Where a secret stands: behind a `literal`, in small letters; the group `value` of the form is hidden."""

    name: str
    literal: bytes
    form: str
    is_secret: Callable[[str], bool] = _is_given
    reach: int = 0  # the form is tried at the literal, or looked for so far behind it

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.form, re.IGNORECASE | re.ASCII)


_USER = (
    rf"(?<=\s)(?:-u|--(?:proxy-)?user)(?:=|[ \t]{{0,5}}){_QUOTE}"
    rf"(?:[^\s:\"'`]{{0,128}}{_QUOTE}:{_QUOTE}(?=[^\s\"'`]{{3}})|(?=[^\s:\"'`]{{6,256}}:[\"'`\s]))(?P<value>[^\s\"'`]{{3,256}})"
)
_HEADER = (
    rf"(?<=\s)(?:-H|--header)(?:=|[ \t]{{0,5}}){_QUOTE}[\w-]{{0,40}}(?:token|key|auth|authorization):[ \t]*"
    r"(?P<value>[\w=~@.+/-]{8,256})(?=[\s\"'`])"
)
_GLUED = rf"(?<=\s)-p{_QUOTE}(?P<value>[^\s\"'`|;&<>]{{4,128}})"  # mysql -pSECRET
_APART = rf"(?<=\s)(?:-p|--password)[ =]{_QUOTE}(?P<value>[^\s\"'`|;&<>-][^\s\"'`|;&<>]{{3,128}})"
_IS = r"(?:[ \t]*[:=-][ \t\r\n]*|[ \t]+(?:is|was|are)[ \t]*:?[ \t\r\n]*)"
_SEED = rf"{_QUOTE}\*{{0,2}}{_IS}{_QUOTE}(?P<value>[a-z]{{3,8}}(?:[ \t,]{{1,3}}[a-z]{{3,8}}){{11,23}})(?![ \t]?[a-z])"
_NETRC = r"login[ \t]{1,4}\S{1,128}\s{1,8}password[ \t]{1,4}(?P<value>[^\s\"']{3,256})"
_RAW_HEADER = (
    rf"authorization{_QUOTE}[ \t]*[:=,][ \t]*{_QUOTE}(?!AWS4)(?P<value>[\w.~+/=@-]{{16,2048}})(?=[\s\"'`,;\\]|$)"
)
_DOCKER = r"auth\"[ \t]{0,4}:[ \t]{0,4}\"(?P<value>[A-Za-z0-9+/]{8,4096}={0,2})\""

CONTEXTS = (
    Context("password", b"curl", _USER, reach=_REACH),
    Context("authorization", b"curl", _HEADER, looks_like_password, reach=_REACH),
    Context("password", b"wget", _USER, reach=_REACH),
    Context("password", b"mysql", _GLUED, reach=_REACH),
    Context("password", b"mariadb", _GLUED, reach=_REACH),
    Context("password", b"sshpass", _APART, reach=_REACH),
    Context("password", b"docker login", _APART, reach=_REACH),
    Context("password", b"redis-cli", rf"(?<=\s)-a[ =]{_QUOTE}(?P<value>[^\s\"'`|;&<>]{{4,128}})", reach=_REACH),
    Context("password", b"login ", _NETRC),
    Context("password", b":5432:", r":5432:[^:\s]{1,64}:[^:\s]{1,64}:(?P<value>(?![\s\"'])\S{3,256})"),
    Context("password", b"cleartextpassword", r"\w+\"\s{0,4}value=\"(?P<value>[^\"\n]{3,256})\""),
    Context("authorization", b"authorization", _RAW_HEADER, looks_random),
    Context("registry-auth", b'auth"', _DOCKER, _is_base64),
    Context("registry-auth", b"_auth", r"_auth[ =]{1,4}\"?(?P<value>[A-Za-z0-9+/]{8,4096}={0,2})", _is_base64),
    Context("seed-phrase", b"phrase", rf"phrase{_SEED}", _is_seed),
    Context("seed-phrase", b"mnemonic", rf"mnemonic{_SEED}", _is_seed),
    Context("seed-phrase", b"seed", rf"seed(?:[ _]words)?{_SEED}", _is_seed),
)

# A Kubernetes secret: its values are base64 of anything, so all of them are hidden.
_KUBERNETES = re.compile(r"kind[\"']?:[ \t]*[\"']?Secret\b", re.IGNORECASE)
_KUBERNETES_DATA = re.compile(r"\bdata[\"']?:[ \t]*\{?[ \t]*\r?\n?(?:[ \t]*#[^\n]{0,200}\n)?")
_KUBERNETES_VALUE = re.compile(
    r"[ \t]*[\"']?[\w.-]{1,128}[\"']?:[ \t]*(?:[|>][-+]?[ \t]*\r?\n[ \t]*)?[\"']?"
    r"(?P<value>[A-Za-z0-9+/]{4,8192}={0,3})[\"']?,?[ \t]*(?:\r?\n|$|(?=\}))"
)
_LONGEST_HEADER = 600  # characters between `kind:` and `data:`, either way


_BY_LITERAL = {each.literal: [other for other in CONTEXTS if other.literal == each.literal] for each in CONTEXTS}


def secrets_in_context(text: str, lowered: bytes) -> Iterator[Span]:
    """Yield where the secrets are that a command, a file or a header shows.

    `lowered` is the text in small ASCII letters, one byte a character.
    """
    for literal, contexts in _BY_LITERAL.items():
        at = lowered.find(literal)
        while at >= 0:
            after = lowered.find(literal, at + len(literal))
            for context in contexts:
                if context.reach:
                    end = min(at + context.reach, after if after >= 0 else len(text))
                    options = list(context.pattern.finditer(text, at, end))
                else:
                    option = context.pattern.match(text, at)
                    options = [option] if option else []
                for found in options:
                    if context.is_secret(found["value"]):
                        yield *found.span("value"), context.name
            at = after
    yield from _kubernetes_secrets(text, lowered)


def _kubernetes_secrets(text: str, lowered: bytes) -> Iterator[Span]:
    done, at = 0, -1
    while (at := lowered.find(b"kind", at + 1)) >= 0:
        kind = _KUBERNETES.match(text, at)
        if kind is None:
            continue
        begin, end = max(done, kind.start() - _LONGEST_HEADER), kind.end() + _LONGEST_HEADER
        for data in _KUBERNETES_DATA.finditer(text, begin, end):
            done = max(done, data.end())
            while value := _KUBERNETES_VALUE.match(text, done):
                if not is_placeholder(value["value"]):
                    yield *value.span("value"), "kubernetes-secret"
                done = value.end()


# --- values given to a name, in code, settings and sentences -------------------------------------

_KEYWORDS = (  # of two names for one value, the first counts
    b"bearer", b"authorization", b"pass", b"pw", b"psk", b"secret", b"token", b"key", b"credential",
    b"kennwort", b"clave", b"senha", b"contrase",
)  # fmt: skip
# Each is two characters or more, which are all ? in the ASCII text.
_BEYOND_ASCII = re.compile("密码|密碼|口令|パスワード|暗証番号|비밀번호|암호|패스워드")
_LONGEST_BEYOND_ASCII = 5
_STRETCH = 4096  # characters; searching this many takes as long as starting a search
_SHORTEST_PASSWORD = 6
_SHORTEST_KEY = 16  # below it a value given to `token` or `key` is a count, a name or a word
_SHORTEST_MIXED_KEY = 12
_LOOKED_AT = 120  # characters of a value
_SHORTEST_PLAIN_KEY = 20  # where only the value says that it is one
_NO_SECRET_KEY = re.compile(r"(?:public|pub|primary|foreign|sort|cache|partition|group|host)[ _-]?$", re.IGNORECASE)

_KEY_OF = (  # keys that are secrets
    "(?:api|access|auth|secret|private|priv|signing|encryption|account|service|master|shared|client|app|admin|license"
    "|session|webhook|deploy|storage|subscription|consumer)[ _-]?"
)
_NAME = (  # the end of a name in code, settings, headers or prose
    r"(?P<password>passw(?:or)?[dt]?s?|pwd|passphrase|pass_?code|(?<=mot de )passe"
    r"|(?<![a-z])pass(?=[\"'`\]]?[ \t]*[=:])"
    r"|(?<![a-z])(?:pw|psk)(?=[\"'`\]]?[ \t]*[=:]|[ \t]+(?:is|was|ist|lautet)[ \t])"
    r"|kennwort|clave|senha|contraseñas?|密码|密碼|口令|パスワード|暗証番号|비밀번호|암호|패스워드)"
    rf"|(?P<key>secrets?|tokens?|credentials?|{_KEY_OF}key)"
    r"|(?P<other_key>(?<=[\w-])key)"  # of a service that nobody has heard of: `acme_key`, `acmeKey`
)
# What a password is for, in a sentence: `password for the router is ...`.
_PURPOSE = (
    r"(?P<purpose>[ \t]+(?:of|for|to|on|at|from|für|von|vom|zum|zur|des|der|du|de|des|pour|d'|del|para)"
    r"[ \t'][^\n:=;!?\"`|]{1,48}?)?"
)
# Up to the value: the rest of the name, quotes and emphasis around it, and = : := => or a word of prose.
_BETWEEN = (
    r"(?P<rest>[\w-]{0,24})(?P<closing>\\{0,3}[\"'`]|\]|\*{1,2})?"
    rf"{_PURPOSE}"
    r"(?:(?:[ \t]+string)?[ \t]*"
    r"(?P<sign>:{1,3}=|=>|==?|[?.+]=|：|:|->|(?<=[\"'])(?:,|[ \t]value=)|(?<=\w)>)[ \t]*\*{0,2}[ \t]*"
    r"(?:[|>][-+]?[ \t]*(?=\r?\n))?(?:(?<=[|>])\r?\n[ \t]*)?"
    r"|[ \t]+(?P<verb>(?:is|was)(?:[ \t]+now)?|will[ \t]be|(?:changed|set|reset)[ \t]to|to|ist|war|lautet|est|es|era|é)"
    r"[ \t]*:?[ \t]+"
    r"|[ \t]*(?P<particle>是|为|為|は|が|는|은|이|가)[ \t]*:?[ \t]*|(?(purpose)(?!)|(?P<blank>[ \t]+)))"
    r"(?P<type>(?:str|string|bytes)(?:[ \t]*\|[ \t]*None)?[ \t]*=[ \t]*)?"
)
_CJK = "\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff00-\uffef"
_VALUE = (
    r"(?P<opening>\\{0,3}[\"'`「『“„«]{1,3}|<)?"
    rf"(?P<value>[^\s\"'`<>,;|(){{}}\[\]\\{_CJK}”“»]{{6,2048}})(?P<after>[(\[{{])?"
)
_ASSIGNMENT = re.compile(f"(?:{_NAME}){_BETWEEN}{_VALUE}", re.IGNORECASE | re.ASCII)
_NAME_START = re.compile(f"{_KEY_OF}$", re.IGNORECASE)
_LONGEST_START = 14  # "subscription" and a separator, before `key`
_NEXT_PARAMETER = re.compile(r"&(?:[\w.-]+=|(?:quot|lt|gt|amp|apos|nbsp|#39)\b)")  # or what HTML makes of a quote
# Names that only begin like a password: `password_hash`, `HTTPPasswordMgr`.
_NO_PASSWORD = re.compile(r"hash|mgr|manager|policy|hint|strength|length|type|method|field", re.IGNORECASE)
_TAG_ENDS = re.compile(r"\s*</")
_REST_OF_QUOTED = re.compile(r"[^\s\"'`\\]{0,256}(?=\\?[\"'`])")
# `Zx9-blue7 is the password`, `use Zx9-blue7 as the password`
_BEFORE_NAME = re.compile(
    r"(?:^|(?<=[\s\"'`/#;*]))(?P<value>[^\s\"'`<>()\[\]]{6,64})[\"'`]?[ \t]+(?:is|as|ist|als)[ \t]+"
    r"(?:(?:the|my|our|your|its|a|new|das)[ \t]+)?(?:[\w-]{1,20}[ \t]+){0,2}$",
    re.IGNORECASE | re.ASCII,
)
_LONGEST_BEFORE = 120
_LONGEST_RESOURCE = 60
_BEARER = re.compile(r"bearer[ \t]+(?P<value>[A-Za-z0-9._~+/=-]{16,2048})", re.IGNORECASE | re.ASCII)
_BASIC = re.compile(
    r"authorization\\?[\"']?[ \t]*[:=][ \t]*\\?[\"']?[ \t]*(?P<scheme>basic|token|apikey|key|digest|api-token)[ \t]+"
    r"(?P<value>[A-Za-z0-9._~+/=-]{8,2048})",
    re.IGNORECASE | re.ASCII,
)


def assigned_secrets(text: str, lowered: bytes) -> Iterator[Span]:
    """Yield where the secrets are that are given to a name.

    `lowered` is the text in small ASCII letters, one byte a character.
    """
    for keyword in _KEYWORDS:
        at = lowered.find(keyword)
        while at >= 0:
            yield from _at_keyword(text, keyword, at)
            at = lowered.find(keyword, at + len(keyword))
    for first, last in () if text.isascii() else stretches(lowered, b"??", overlap=_LONGEST_BEYOND_ASCII):
        for name in _BEYOND_ASCII.finditer(text, first, last):
            yield from _at_keyword(text, b"", name.start())


def stretches(plain: bytes, sign: bytes, *, overlap: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a text that hold a sign, each going on into the next for `overlap` characters.

    One emoji makes every character take four bytes: wide characters are looked for only where there are some.
    """
    at = plain.find(sign)
    while at >= 0:
        end = at + _STRETCH
        yield at, end + overlap
        at = plain.find(sign, end)


def _at_keyword(text: str, keyword: bytes, at: int) -> Iterator[Span]:
    if keyword == b"bearer":
        found = _BEARER.match(text, at)
        if found and looks_random(_value(found)) and not is_placeholder(_value(found)):
            yield _span(found, "bearer-token")
    elif keyword == b"authorization":
        found = _BASIC.match(text, at)
        if found and not is_placeholder(found["value"]):
            yield _span(found, "authorization")
    else:
        found = _ASSIGNMENT.match(text, _name_start(text, keyword, at))
        if found and _is_secret(text, found):
            start, end, _ = _span(found, "")
            if found["opening"] and (rest := _REST_OF_QUOTED.match(text, end)):
                end = rest.end()
            yield start, end, "password" if found["password"] else "assigned-secret"
        elif keyword == b"pass" and text[at + 4 : at + 8].lower() in {"word", "wort", "code", "phra"}:
            before = _BEFORE_NAME.search(text, max(0, at - _LONGEST_BEFORE), at)
            if before and looks_chosen(before["value"]) and not is_placeholder(before["value"]):
                yield *before.span("value"), "password"


def _name_start(text: str, keyword: bytes, at: int) -> int:
    """Return where the name begins: `key` alone means nothing, `api_key` does."""
    if keyword != b"key":
        return at
    before = _NAME_START.search(text, max(0, at - _LONGEST_START), at)
    return before.start() if before else at


def _is_secret(text: str, found: re.Match[str]) -> bool:
    value = _value(found)
    if found["after"] or is_placeholder(value) or found["value"].endswith("...") or not _is_said(text, found):
        return False
    if _is_resource(text, found):
        return False
    if found["sign"] == "," or (found["password"] and _NO_PASSWORD.search(found["rest"])):
        return len(value) >= _SHORTEST_MIXED_KEY and _is_mixed(value)
    return _is_password(found, value) if found["password"] else _is_key(found, value)


def _is_resource(text: str, found: re.Match[str]) -> bool:
    """Say whether the name is one of a cloud's resources: `arn:aws:...:secret:name`, `AWS::IAM::AccessKey`."""
    before = text[max(0, found.start() - _LONGEST_RESOURCE) : found.start()]
    return before.endswith(":") or "::" in before.rpartition('"')[2] or found["rest"].lower().startswith("smanager")


def _is_password(found: re.Match[str], value: str) -> bool:
    if found["purpose"]:
        return looks_chosen(value)
    if len(value) >= _SHORTEST_KEY:
        return looks_random(value) or looks_like_password(value)
    shortest = _SHORTEST_PASSWORD if found["sign"] or found["opening"] or found["particle"] else 7
    return len(value) >= shortest and looks_like_password(value)


def _is_key(found: re.Match[str], value: str) -> bool:
    if found["other_key"]:
        before = found.string[max(0, found.start() - _LONGEST_START) : found.start()]
        is_named = found["sign"] not in {None, ","} and not found["rest"] and not _NO_SECRET_KEY.search(before)
        return is_named and len(value) >= _SHORTEST_PLAIN_KEY and _is_mixed(value)
    if len(value) < _SHORTEST_KEY:
        return len(value) >= _SHORTEST_MIXED_KEY and bool(found["sign"]) and _is_mixed(value)
    return not found["purpose"] and looks_random(value)


def _is_mixed(value: str) -> bool:
    """Say whether letters and digits take turns as in random text, and not as in `page12` or `2026-11-18`."""
    kinds = [char.isdigit() for char in value[:_LOOKED_AT] if char.isalnum()]
    return sum(one != other for one, other in pairwise(kinds)) >= 4 and looks_random(value)


def _is_said(text: str, found: re.Match[str]) -> bool:
    """Say whether name and value belong together: after a mere blank only in `--token value` and `PASSWORD 'value'`."""
    if found["sign"] == ">":
        return _TAG_ENDS.match(text, found.end("value")) is not None
    if found["sign"] or found["particle"]:
        return True
    if found["verb"]:
        return found["verb"].lower() != "to" or bool(found["opening"])
    start = found.start()
    word = text.rfind("-", max(0, start - 24), start)
    is_flag = word > 0 and text[word - 1] == "-" and " " not in text[word:start]
    if is_flag or (bool(found["opening"]) and found["opening"] != "<" and not found["rest"]):
        return True
    # `ACME SECRET value`, `the token value`: the value alone must tell.
    value = _value(found)
    return not found["rest"] and len(value) >= _SHORTEST_PLAIN_KEY and value.isalnum() and _is_mixed(value)


def _value(found: re.Match[str]) -> str:
    """Return the value without the punctuation of its sentence and the parameters that follow it in an address.

    A password may end in ! or ?, so these count as part of it.
    """
    value = _NEXT_PARAMETER.split(found["value"], maxsplit=1)[0]
    return value.rstrip(".,:*") if found.re is _ASSIGNMENT and found["password"] else value.rstrip(".,:!?*")


def _span(found: re.Match[str], kind: str) -> Span:
    start = found.start("value")
    return start, start + len(_value(found)), kind
