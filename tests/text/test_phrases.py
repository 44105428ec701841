"""A phrase is found as whole words where a script has them, anywhere else where it has none."""

from __future__ import annotations

import pytest

from notewell.text.phrases import Phrase


@pytest.mark.parametrize(
    ("phrase", "text", "found"),
    [
        pytest.param("car", "my car, is red", True, id="a word"),
        pytest.param("car", "carpet and scarf", False, id="inside of words"),
        pytest.param("CAR", "the car's door", True, id="in any case, before an apostrophe"),
        pytest.param("car", "car-pool", True, id="before a hyphen"),
        pytest.param("car", "car_pool", False, id="part of an identifier"),
        pytest.param("red car", "a red\n  car", True, id="over a line break"),
        pytest.param("C++", "we use C++20", True, id="beside a sign there is no word to be inside of"),
        pytest.param("strasse", "Hauptstrasse", False, id="the end of a German compound"),
        pytest.param("Müller", "Frau Mu\u0308ller", True, id="composed and decomposed"),
        pytest.param("cafe", "cafe\u0301", False, id="a mark belongs to its letter"),
        pytest.param("कम", "कमल", False, id="Hindi has words"),
        pytest.param("密码", "我的密码在抽屉里", True, id="Chinese"),
        pytest.param("パスワード", "新しいパスワードは", True, id="Japanese"),
        pytest.param("รหัส", "ลืมรหัสผ่าน", True, id="Thai"),
        pytest.param("학교", "학교에서", True, id="Korean, where particles cling to words"),
        pytest.param("car", "我的car很好", True, id="a word among Chinese"),
        pytest.param("car", "我的carpet很好", False, id="part of a word among Chinese"),
    ],
)
def test_whole_words(phrase, text, found):
    assert Phrase(phrase).is_in(text) is found
    assert Phrase(phrase, whole_words=False).is_in(text) is (found or phrase.casefold() in text.casefold())


def test_the_lines_of_a_phrase_that_is_broken():
    assert Phrase("red car").lines_in("a car\nthe red\ncar is\n\nred  car") == (2, 3, 5)


@pytest.mark.parametrize(("phrase", "short"), [("ab", True), ("a b c", False), ("密", True), ("密码", False)])
def test_what_is_too_short(phrase, short):
    assert Phrase(phrase).is_too_short is short
