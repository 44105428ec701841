"""The table of irregular forms: every form leads to one plain form, which leads nowhere else."""

from __future__ import annotations

from Stemmer import Stemmer

from notewell.text.lexicon import IRREGULAR, stem


def test_a_plain_form_is_no_form_of_another_word():
    assert not IRREGULAR.keys() & set(IRREGULAR.values())


def test_a_form_and_its_plain_form_are_one_term():
    for form, plain in IRREGULAR.items():
        assert stem(form) == stem(plain)


def test_only_forms_are_listed_that_stemming_would_keep_apart():
    stemmer = Stemmer("english")
    assert [form for form, plain in IRREGULAR.items() if stemmer.stemWord(form) == stemmer.stemWord(plain)] == []
