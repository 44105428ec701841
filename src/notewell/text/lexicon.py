"""Turns text into searchable terms: splits it into words, folds and stems them. Notes and queries are treated alike.

Folding evens out case, width and Latin accents; stemming includes irregular forms. Identifiers count whole and in
parts: `JIRA-123` is also `jira` and `123`, `MemoryIndex` also `memory` and `index`. Scripts without blanks between
words (Chinese, Japanese, Korean, Thai, ...) become pairs of characters; the last character of a run also stands alone,
so that any single character is the beginning of some term.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from Stemmer import Stemmer

if TYPE_CHECKING:
    from collections.abc import Iterator

LEXICON_VERSION = 3  # part of the index profile: a change of any rule here rebuilds indexes

# Scripts written without blanks, and Hangul, whose particles cling to words (KorQuAD: nDCG .84 by words, .96 by pairs).
_PAIRED = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7fb\uf900-\ufaff\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1780-\u17d3\U0001b000-\U0001b16f"
    "\U00020000-\U0003ffff"
)
# Marks that belong to words but that \w leaves out: without them Hindi, Hebrew and Arabic words would fall apart.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0963\u0966-\u0dff\u0f00-\u0fbc"
)
_PAIRED_RUN = re.compile(f"([{_PAIRED}]+)")
_TOKEN = re.compile(rf"[\w{_MARKS}]+(?:[-./@:+#'’\\][\w{_MARKS}]+)*")
_JOINERS = re.compile(r"[-./@:+#\\_]+")
_CASE_BOUNDARY = re.compile(
    r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])"
)
_MOST_PARTS_OF_A_NAME = 4  # `9b5b0964ef` splits into more: it is a hash, and its letters alone mean nothing
# Articles, pronouns and prepositions of French and Italian that lose their vowel: "l'ordinateur" is `ordinateur`.
_ELISION = re.compile(
    r"^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|un|all|dall|dell|nell|sull|coll|quest|quell)'(?=\w\w\w)", re.IGNORECASE
)
_LATIN_ACCENT = re.compile("(?<=[A-Za-z\u0370-\u03ff])[\u0300-\u036f]+")
# ASCII that cannot be in a token, for `str.translate`: the remaining pieces repeat a lot.
_BLANKED = {code: " " for code in range(128) if not re.match(r"[-\w./@:+#'\\]", chr(code))}
_ARABIC_VOWELS = re.compile("[\u0640\u064b-\u065f\u0670]")

LONGEST_TERM = 64  # characters; longer runs are data such as base64
_EXPANSIONS_KEPT = 200_000  # distinct pieces, some 40 MB; then the memo starts over
_LONGEST_KEPT = 32  # characters; longer pieces, above all lines of unspaced scripts, hardly ever repeat
_WHOLE = "\x01"  # stands before an identifier that counts whole; cannot occur in a term


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a text: its terms in order, and the whole of an identifier that has parts."""

    parts: tuple[str, ...]
    whole: str = ""
    paired: bool = False  # unspaced script: the parts are overlapping pairs, then the last character


def index_terms(text: str) -> str:
    """Return the terms of `text` separated by blanks, in order, then the identifiers that count whole as well.

    The wholes come last so that they do not stand between the neighbours of a phrase.
    """
    folded = fold(text)
    if folded.isascii():
        folded = folded.translate(_BLANKED).replace(". ", " ")
    in_order, *marked = " ".join(filter(None, map(_expansions.__getitem__, folded.split()))).split(_WHOLE)
    wholes, runs = [], [in_order]
    for piece in marked:
        whole, _, run = piece.partition(" ")
        wholes.append(whole)
        runs.append(run)
    return " ".join(filter(None, [*map(str.rstrip, runs), *wholes])) if wholes else in_order


def words(text: str) -> Iterator[Word]:
    """Yield the words of `text` in order; a run of an unspaced script is one word whose parts are its pairs."""
    folded = fold(text)
    for position, piece in enumerate(_PAIRED_RUN.split(folded)):
        if position % 2:
            yield Word(pairs(piece), paired=True)
        else:
            for token in _TOKEN.findall(piece):
                parts, _, whole = _expansions[token].partition(_WHOLE)
                yield Word(tuple(parts.split()), whole)


def runs(text: str) -> list[str]:
    """Return a text in pieces that alternate: with blanks between words, then of a script without, or of Hangul."""
    return _PAIRED_RUN.split(text)


def is_unspaced(char: str) -> bool:
    """Return whether a character is of a script without blanks between words, or of Hangul."""
    return _PAIRED_RUN.match(char) is not None


def fold(text: str) -> str:
    """Return `text` with width, compatibility forms, Latin accents and Arabic vowel marks evened out; case stays."""
    if text.isascii():
        return text
    if len(text.encode("utf-8", "replace")) - len(text) > len(text) // 16:
        return _folded(text)
    return _FEW_FOREIGN.sub(_folded_match, text)  # a dash or an accent here and there: five times as fast


def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text)
    bare = _ARABIC_VOWELS.sub("", _LATIN_ACCENT.sub("", decomposed))
    return unicodedata.normalize("NFC", bare)


# With the character before it, which an accent may belong to.
_FEW_FOREIGN = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]+")
_folded_run = lru_cache(maxsize=4096)(_folded)


def _folded_match(match: re.Match[str]) -> str:
    return _folded_run(match[0])


def pairs(run: str) -> tuple[str, ...]:
    """Return the pairs of neighbouring characters of `run`, then its last character alone."""
    return (*(run[i : i + 2] for i in range(len(run) - 1)), run[-1])


def stem(word: str) -> str:
    """Return the stem of a folded, lower-case word; words outside a-z are their own stem."""
    word = IRREGULAR.get(word, word)
    if len(word) <= 3 or not (word.isascii() and word.isalpha()):
        return word
    return _thread.stemmer.stemWord(word)  # type: ignore[no-any-return]


def irregular_forms(term: str) -> tuple[str, ...]:
    """Return the irregular forms of a term: `bought` for `buy`."""
    return _irregular_forms().get(term, ())


@cache
def _irregular_forms() -> dict[str, tuple[str, ...]]:
    forms: dict[str, tuple[str, ...]] = {}
    for form, plain in IRREGULAR.items():
        forms[stem(plain)] = (*forms.get(stem(plain), ()), form)
    return forms


def _terms_of(piece: str) -> str:
    """Return the terms of a piece of folded text without blanks; an identifier is followed by its whole, marked."""
    if piece.isascii():
        if piece.isalpha() and (piece.islower() or piece[1:].islower()):  # most words
            return stem(piece.lower()) if len(piece) <= LONGEST_TERM else ""
        return " ".join(filter(None, map(_terms_of_token, _TOKEN.findall(piece))))
    terms: list[str] = []
    for position, part in enumerate(_PAIRED_RUN.split(piece)):
        if position % 2:
            terms += pairs(part)
        else:
            terms += map(_terms_of_token, _TOKEN.findall(part))
    return " ".join(filter(None, terms))


def _terms_of_token(token: str) -> str:
    token = token.replace("’", "'")
    if "'" in token:
        # "Maria's" is Maria; "don't" is one word
        token = _ELISION.sub("", token, count=1).removesuffix("'s").replace("'", "")
    parts = [part for piece in _JOINERS.split(token) if piece for part in _split_name(piece)]
    terms = " ".join(stem(part.lower()) for part in parts if len(part) <= LONGEST_TERM)
    whole = token.strip("_").lower()
    if len(parts) <= 1 or len(whole) > LONGEST_TERM:
        return terms
    return f"{terms} {_WHOLE}{whole}"


def _split_name(piece: str) -> list[str]:
    """Split `camelCase`, `HTTPServer` and `v2` into what people would type; ordinary words and hashes stay whole."""
    parts = _CASE_BOUNDARY.split(piece)
    return parts if len(parts) <= _MOST_PARTS_OF_A_NAME else [piece]


class _Expansions(dict[str, str]):
    """Remembers the terms of pieces: text repeats its words, so nearly every look-up is one dictionary access."""

    def __missing__(self, piece: str) -> str:
        if len(self) >= _EXPANSIONS_KEPT:
            self.clear()
        terms = _terms_of(piece)
        if len(piece) <= _LONGEST_KEPT:
            self[piece] = terms
        return terms


class _Thread(threading.local):
    """Holds a stemmer for each thread: PyStemmer's must not be shared."""

    def __init__(self) -> None:
        self.stemmer = Stemmer("english", 0)


_expansions = _Expansions()
_thread = _Thread()


# --- irregular forms -----------------------------------------------------------------------------

# English forms that stemming misses: `went` is found by `go`, `children` by `child`. Left out are those that more often
# are another word: "ground", "wound", "rose", "bit", "led" (a lamp), "data". On the test sets of docs/retrieval.md they
# gain .002 in the mean and .007 on dialogue, where people tell what they did.
# The plain form, then the others.
_VERBS = """
    arise arose arisen, awake awoke awoken, bear borne, beat beaten, become became, begin began begun, bend bent,
    bind bound, bite bitten, bleed bled, blow blew blown, break broke broken, breed bred, bring brought, build
    built, burn burnt, buy bought, catch caught, choose chose chosen, cling clung, come came, creep crept, deal
    dealt, dig dug, draw drew drawn, dream dreamt, drink drank drunk, drive drove driven, eat ate eaten, fall fell
    fallen, feel felt, fight fought, find found, flee fled, fling flung, fly flew flown, forbid forbade forbidden,
    foresee foresaw foreseen, forget forgot forgotten, forgive forgave forgiven, freeze froze frozen, give gave
    given, go goes went gone, grow grew grown, hang hung, hear heard, hide hidden, hold held, keep kept, kneel knelt,
    know knew known, lean leant, leap leapt, learn learnt, leave left, lend lent, lose lost, make made, mean meant,
    meet met, mistake mistook mistaken, overcome overcame, pay paid, prove proven, ride rode ridden, ring rang rung,
    rise risen, run ran, say said, see saw seen, seek sought, sell sold, send sent, sew sewn, shake shook shaken,
    shine shone, shoot shot, show shown, shrink shrank shrunk, sing sang sung, sink sank sunk, sit sat, sleep slept,
    slide slid, speak spoke spoken, spell spelt, spend spent, spill spilt, spin spun, spoil spoilt, stand stood,
    steal stole stolen, stick stuck, sting stung, strike struck stricken, string strung, strive strove striven,
    swear swore sworn, sweep swept, swell swollen, swim swam swum, swing swung, take took taken, teach taught, tear
    tore torn, tell told, think thought, throw threw thrown, tread trod trodden, understand understood, undertake
    undertook undertaken, undo undid undone, wake woke woken, wear wore worn, weave wove woven, weep wept, win won,
    withdraw withdrew withdrawn, withstand withstood, write wrote written, rewrite rewrote rewritten, rebuild
    rebuilt, overwrite overwrote overwritten
"""
_NOUNS = """
    child children, man men, woman women, person people, foot feet, tooth teeth, goose geese, mouse mice, wife
    wives, knife knives, shelf shelves, half halves, loaf loaves, thief thieves, wolf wolves, criterion criteria,
    phenomenon phenomena, analysis analyses, hypothesis hypotheses, diagnosis diagnoses, crisis crises, index
    indices, matrix matrices, vertex vertices, appendix appendices, bacterium bacteria, nucleus nuclei, stimulus
    stimuli
"""


def _plain_forms(*tables: str) -> dict[str, str]:
    entries = (entry.split() for table in tables for entry in table.split(","))
    return {form: plain for plain, *forms in entries for form in forms}


IRREGULAR = _plain_forms(_VERBS, _NOUNS)
