"""Every kind of secret in every context: none is missed, and nothing but the secret goes."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest

from notewell.text.redaction import Redactor
from notewell.text.redaction.kinds import BASE64, MARKED, PREFIXED

from .planted import FORMS, VALUES, disguised, left_over, planted, private_keys, secrets_of, wrapped

REDACTOR = Redactor(b"k" * 32)
SEEDS = [1, 2]  # `python -m evals.redaction` takes more


def test_forty_kinds_and_more_are_known_and_planted():
    known = {kind.name for kind in (*PREFIXED, *BASE64)} | {kind.name for kind in MARKED}
    assert len(known) >= 90
    assert known - set(FORMS) - set(VALUES) == set()


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_none_is_missed_and_each_kind_is_named(seed):
    missed, misnamed = [], []
    for each in planted(seed):
        redacted = REDACTOR.redact(each.text)
        if left_over(each.secret, redacted.text):
            missed.append((each.kind, each.context, each.text))
        if each.kind not in {found.kind for found in redacted.found}:
            misnamed.append((each.kind, each.context, redacted.found))
    assert missed == []
    assert misnamed == []


@pytest.mark.parametrize("seed", SEEDS)
def test_tokens_broken_by_a_line_end_are_not_missed(seed):
    missed = []
    for each in wrapped(seed):
        text = REDACTOR.redact(each.text).text
        if left_over(each.secret, text.replace("\n", "")) or any(
            piece in text for piece in re.split(r"\\?\r?\n[> ]*", each.text[9:])[:2]
        ):
            missed.append((each.kind, each.context, each.text, text))
    assert missed == []


@pytest.mark.parametrize("seed", SEEDS)
def test_tokens_in_disguise_are_not_missed(seed):
    missed = []
    for each in disguised(seed):
        text = REDACTOR.redact(each.text).text
        plain = re.sub("[\u00ad\u200b\u200d\\\\]", "", unquote(unquote(text)))
        if left_over(each.secret, plain):
            missed.append((each.kind, each.context, each.text, text))
    assert missed == []


def test_a_token_in_disguise_has_the_mark_of_the_plain_one():
    secret = dict(secrets_of(1))["github-pat"]
    (plain,) = REDACTOR.redact(secret).found
    assert REDACTOR.redact(secret.replace("_", "%5F")).found == (plain,)
    assert REDACTOR.redact("\u200b".join(secret)).found == (plain,)


def test_private_keys_go_and_the_lines_stay():
    for each in private_keys(5):
        redacted = REDACTOR.redact(each.text)
        assert each.secret not in redacted.text, each.context
        assert "PRIVATE KEY" not in redacted.text, each.context
        assert "after" in redacted.text, each.context
        assert redacted.text.count("\n") == each.text.count("\n"), each.context
        assert [found.kind for found in redacted.found] == ["private-key"], each.context


def test_a_second_pass_changes_nothing():
    texts = [*planted(3), *wrapped(3), *private_keys(3)]
    for each in texts[::5]:
        once = REDACTOR.redact(each.text)
        again = REDACTOR.redact(once.text)
        assert again.text == once.text
        assert again.found == ()
