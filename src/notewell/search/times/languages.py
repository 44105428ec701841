"""The languages whose time words are read, by their code."""

from __future__ import annotations

from collections.abc import Mapping

from notewell.search.times.east_asian import CHINESE, JAPANESE, KOREAN
from notewell.search.times.european import ENGLISH, FRENCH, GERMAN, PORTUGUESE, SPANISH
from notewell.search.times.vocabulary import Vocabulary

LANGUAGES: Mapping[str, Vocabulary] = {
    "en": ENGLISH, "de": GERMAN, "fr": FRENCH, "es": SPANISH, "pt": PORTUGUESE,
    "zh": CHINESE, "ja": JAPANESE, "ko": KOREAN,
}  # fmt: skip

# What `offset` in a phrase of the kind `month_of_year` may say, in years from the present one.
YEAR_OFFSETS: Mapping[str, int] = {
    "last": -1, "this": 0, "letzten": -1, "vorigen": -1, "vergangenen": -1, "diesen": 0, "l'an dernier": -1,
    "l’an dernier": -1, "l'annee derniere": -1, "l’annee derniere": -1, "cette annee": 0, "del ano pasado": -1,
    "de este ano": 0, "do ano passado": -1, "deste ano": 0, "去年": -1, "昨年": -1, "今年": 0, "前年": -2, "一昨年": -2,
    "작년": -1, "올해": 0, "재작년": -2,
}  # fmt: skip
