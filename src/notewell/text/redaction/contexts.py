"""Lists the places where a secret is told by what stands around it: commands, files and headers.

Assignments to a name such as `password` or `api_key`, and sentences about passwords, are in assignments.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from notewell.text.redaction.values import Span, is_placeholder, looks_like_password, looks_random

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


def secrets_in_context(text: str, lowered: bytes) -> Iterator[Span]:
    """Yield where the secrets are that a command, a file or a header shows.

    `lowered` is the text in small ASCII letters, one byte a character.
    """
    for context in CONTEXTS:
        at = lowered.find(context.literal)
        while at >= 0:
            after = lowered.find(context.literal, at + len(context.literal))
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
