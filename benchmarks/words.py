"""A seed in, a vocabulary out: invented words with the frequencies of real text, and the topics some of them name."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOPICS = 2_000
WORDS_A_TOPIC = 12
GENERAL_WORDS = 30_000  # with the topic words about 54,000 forms: what a few years of somebody's notes hold
FUNCTION_SHARE = 0.45  # of running English text
_TABLE_SLOTS = 1 << 20  # draws are look-ups: the rarest word keeps about three slots
_ZIPF_EXPONENT = 1.07  # English, with Mandelbrot's shift of the first ranks
_FUNCTION_SHIFT = 2.7
_GENERAL_SHIFT = 100  # the commonest noun of somebody's notes stands in about a quarter of the chunks

FUNCTION_WORDS = """
the of and to a in is that for it as was with be by on not he this are or his from at which but have an had they you
were there one all we can her has their been if more when will would who so no out up into them then what some could
its about than only other time may these two do any my now such like our over me even most after also did many before
must through your where much should well each just those how too she still because between both under while during
""".split()

ORDINARY_WORDS = """
meeting project server budget customer report release deadline design review invoice contract database network backup
travel hotel flight garden kitchen school doctor birthday recipe market price order delivery team manager schedule
question answer decision reason problem change update version branch test error account password email phone address
document folder file table column query index cache memory agent model token prompt session user group role policy
water light power window door floor paint wood metal paper book chapter story music song film photo camera travel
""".split()

_ONSETS = "b bl br c ch d dr f fl g gr h j k l m n p pl pr qu r s sh sk st t tr v w z".split()
_VOWELS = "a e i o u ai ea ee oo ou".split()
_CODAS = " b ck d g l ll m n nd nt p r rn rt s st t th x".split(" ")
_CJK = (
    "会议纪要需要在周五之前完成并发送给所有成员",
    "服务器的备份每天凌晨两点自动运行",
    "この設定は次のリリースで変更される予定です",
    "東京の事務所には新しいプリンターがあります",
    "프로젝트 일정은 다음 주에 다시 논의합니다",
    "数据库迁移以后查询速度明显提高",
)


@dataclass(frozen=True)
class Vocabulary:
    """Every word by number, and a table that gives a word's number as often as the word occurs."""

    words: tuple[str, ...]  # function words, then general ones, then those of the topics
    first_topic_word: int
    table: NDArray[np.int32]
    topic_of: dict[str, int]  # a topic's word names it and nothing else does
    cjk: tuple[str, ...] = _CJK

    def topic_words(self, topic: int) -> tuple[str, ...]:
        start = self.first_topic_word + topic * WORDS_A_TOPIC
        return self.words[start : start + WORDS_A_TOPIC]


@cache
def vocabulary(seed: int = 1) -> Vocabulary:
    """Return the vocabulary of this seed, the same on every machine."""
    source = random.Random(seed)
    taken = {*FUNCTION_WORDS, *ORDINARY_WORDS}
    general = [*dict.fromkeys(ORDINARY_WORDS)]
    general += _invented(source, GENERAL_WORDS - len(general), taken)
    of_topics = _invented(source, TOPICS * WORDS_A_TOPIC, taken)
    function_words = [*dict.fromkeys(FUNCTION_WORDS)]
    weights = np.concatenate(
        [
            FUNCTION_SHARE * _zipf(len(function_words), _FUNCTION_SHIFT),
            (1 - FUNCTION_SHARE) * _zipf(len(general), _GENERAL_SHIFT),
        ]
    )
    slots = np.round(np.cumsum(weights) * _TABLE_SLOTS).astype(np.int64)
    table = np.searchsorted(slots, np.arange(_TABLE_SLOTS), side="right").astype(np.int32)
    return Vocabulary(
        words=(*function_words, *general, *of_topics),
        first_topic_word=len(function_words) + len(general),
        table=np.minimum(table, len(weights) - 1),
        topic_of={word: i // WORDS_A_TOPIC for i, word in enumerate(of_topics)},
    )


def _zipf(count: int, shift: float) -> NDArray[np.float64]:
    weights = 1 / (np.arange(count) + shift) ** _ZIPF_EXPONENT
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def _invented(source: random.Random, count: int, taken: set[str]) -> list[str]:
    """Return new pronounceable words; frequent ones come first and are shorter, as in any language."""
    found: list[str] = []
    while len(found) < count:
        syllables = 1 + (source.random() < 0.9) + (source.random() < min(0.9, len(found) / 8_000))
        word = "".join(source.choice(_ONSETS) + source.choice(_VOWELS) for _ in range(syllables))
        word += source.choice(_CODAS)
        if len(word) > 2 and word not in taken:
            taken.add(word)
            found.append(word)
    return found
