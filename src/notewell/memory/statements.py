"""Compares statements: which say the same, which are similar, and which state another value of the same subject."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from notewell.reports import KnownAlready
from notewell.text.entries import find_entries, without_comments
from notewell.text.lexicon import pairs, runs
from notewell.types import Citation

SAME = 0.8  # share of words in common from which two statements say the same, if no name, number or `not` differs
SIMILAR = 0.5  # a person should look at both
MOST_PIECES = 400  # statements of one note that are compared; a diary of years has more, and the newest come last

_WORD = re.compile(r"[^\W_]+(?:['’.@:/_-]?[^\W_]+)*")
_BULLET = re.compile(r"^\s*+(?:[-*+>]|\d{1,9}[.)])\s+")
_NEGATIONS = frozenset("no not never none nothing without cannot nicht kein keine nie pas jamais nunca".split())
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")
# Words that carry no statement of their own: without them a reworded sentence is seen to be the same.
_LIGHT = frozenset(
    "a an the is are was were be been it its this that of to in on at for and or by with as our my".split()
)


def similar_statements(text: str, path: str, note: str, *, first_line: int = 1) -> list[KnownAlready]:
    """Return the statements of a note, or of a part of it, that are similar to `text`, the most similar first."""
    words = _words(text)
    if not words:
        return []
    found = []
    for line, piece in _pieces(_current_lines(note), text):
        likeness, same = _compare(words, _words(piece))
        differs = not same and 0 < likeness < 1 and gives_other_value(text, piece)
        if likeness >= SIMILAR or differs:
            citation = str(Citation(path, first_line + line))
            found.append(KnownAlready(citation, piece.strip(), round(likeness, 3), same, differs))
    return sorted(found, key=_most_telling)


def _current_lines(note: str) -> list[str]:
    """Return the lines of a note; those of comments and of entries that were replaced are blank."""
    found = find_entries(note)
    lines = without_comments(note, found).split("\n")
    for entry in found.entries:
        if entry.replaced_by:
            lines[entry.first_line - 1 : entry.last_line] = [""] * (entry.last_line - entry.first_line + 1)
    return lines


def _most_telling(known: KnownAlready) -> tuple[bool, bool, float, int]:
    return not known.same, not known.differs, -known.likeness, Citation.parse(known.citation).first_line or 0


def most_similar(found: Iterable[KnownAlready], limit: int) -> tuple[KnownAlready, ...]:
    """Return the most similar statements, each place once."""
    places: dict[str, KnownAlready] = {}
    for known in sorted(found, key=_most_telling):
        places.setdefault(known.citation, known)
    return tuple(places.values())[:limit]


def _pieces(lines: list[str], text: str) -> Iterator[tuple[int, str]]:
    """Yield lines, sentences and, for a text of several lines, runs of as many lines, the last of a note first."""
    height = max(1, len([line for line in text.split("\n") if line.strip()]))
    filled = [(number, _BULLET.sub("", line, count=1)) for number, line in enumerate(lines) if line.strip()]
    for number, line in filled[-MOST_PIECES:]:
        yield number, line
        sentences = _SENTENCE_END.split(line)
        if len(sentences) > 1:
            yield from ((number, sentence) for sentence in sentences)
    if height > 1:
        for at in range(max(0, len(filled) - MOST_PIECES), len(filled) - height + 1):
            yield filled[at][0], "\n".join(line for _, line in filled[at : at + height])


def _words(text: str) -> dict[str, str]:
    """Return the words of a text, folded, each with how it was written.

    A run of a script without blanks between words counts by its characters and by its pairs of them.
    """
    written: dict[str, str] = {}
    for position, piece in enumerate(runs(text)):
        found = {*piece, *pairs(piece)} if position % 2 else _WORD.findall(piece)
        written |= {word.casefold(): word for word in found}
    return written


def _compare(new: dict[str, str], known: dict[str, str]) -> tuple[float, bool]:
    """Return how alike two statements are, and whether they say the same.

    Light words count only where that makes them more alike: "the car is red" has the form of "the car is blue".
    """
    ours, theirs = (side.keys() - _LIGHT or side.keys() for side in (new, known))
    if not ours & theirs:
        return 0.0, False
    likeness = _shared_part(ours, theirs)
    same = likeness >= SAME and not any(_decides(word, new.get(word) or known[word]) for word in ours ^ theirs)
    return max(likeness, _shared_part(new.keys(), known.keys())), same


def _shared_part(one: AbstractSet[str], other: AbstractSet[str]) -> float:
    return len(one & other) / len(one | other)


def _decides(word: str, shown: str) -> bool:
    """Return whether a word alone changes what a sentence states: a number, a name, a negation.

    Where words are not told apart, every character does.
    """
    return word in _NEGATIONS or shown != word or any(map(str.isdigit, word)) or len(runs(word)) > 1


# --- another value for the same subject ----------------------------------------------------------

# What is reported must be right nine times out of ten, so everything here names what counts, not what does not: two
# sentences that are equal but for one value, of a subject that has one value, and values of one kind.
# evals/subject_pairs.py measures it.
_VERBS = frozenset(
    """
    is are = : lives works starts begins ends opens closes expires costs weighs lasts takes prefers belongs equals runs
    listens ist sind wohnt lebt arbeitet beginnt endet öffnet schließt kostet heißt dauert est sont habite travaille
    coûte commence es son está vive trabaja cuesta empieza 是 为 為 叫 住
    """.casefold().split()
)
_PREPOSITIONS = frozenset("at in on by to for until after from um am bei von bis auf à en chez 在".split())
# Between the verb and the value; other words there make it another statement.
_BEFORE_A_VALUE = _PREPOSITIONS | frozenset(
    """
    stored hosted located based serviced maintained owned managed assigned called named set due port version number
    level dr mr mrs ms herr frau 上 下 午 晚 早
    """.split()
)
_ONE_AT_A_TIME = frozenset("prefers called named heißt 叫".casefold().split())
_ONE_PLACE = frozenset(
    tuple(pair.split())
    for pair in (
        "lives in/works at/works for/belongs to/stored in/stored at/hosted in/hosted at/hosted by/located in/based in/"
        "serviced by/maintained by/owned by/managed by/assigned to/wohnt in/lebt in/arbeitet bei/habite à/"
        "travaille chez/vive en/trabaja en/住 在"
    ).split("/")
)
# Words for what has one value: that is any word, or only a name, because code is not only "main.py", but also "ugly".
_ATTRIBUTES = frozenset(
    """
    password passphrase name nickname colour color favourite favorite preferred default passwort farbe nom couleur
    """.split()
)
_NAMED_ATTRIBUTES = frozenset(
    """
    passcode pin code wifi ssid branch port host hostname url provider editor shell theme language timezone currency
    title address owner lead manager landlord dentist doctor vet accountant plumber capital email adresse arzt ärztin
    zahnarzt vermieter sprache
    """.split()
)
_OPPOSITES = frozenset(
    frozenset(pair.split("/"))
    for pair in """
    enabled/disabled open/closed on/off allowed/forbidden allowed/disallowed required/optional active/inactive
    public/private up/down always/never online/offline locked/unlocked true/false yes/no paid/unpaid empty/full
    offen/geschlossen an/aus aktiv/inaktiv erlaubt/verboten
    """.split()
)
_FILLERS = frozenset("the now currently still der die das jetzt le la les el los las".split())
_INDEFINITE = frozenset("a an one ein eine einen un une una uno".split())
_ADDITIVE = frozenset(
    "also too another additionally both sometimes often usually or either auch weitere manchmal oft aussi".split()
)
_OF_A_DAY = frozenset("today yesterday tonight heute gestern hoy ayer hier".split())
_OF_MANY = frozenset(  # of whom one may have several
    """
    sister brother sibling son daughter child friend colleague neighbour neighbor cousin aunt uncle customer option
    flight train bus ferry tram error bug fix issue warning order delivery call step page line question
    schwester bruder sohn tochter freund freundin kollege kollegin
    """.split()
)
_DAYS = frozenset(
    """
    monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag samstag sonntag
    """.split()
)
_NUMBERS = _DAYS | frozenset(
    """
    two three four five six seven eight nine ten eleven twelve first second third fourth fifth sixth seventh eighth
    ninth tenth zwei drei vier fünf sechs sieben acht neun zehn elf zwölf 一 二 三 四 五 六 七 八 九 十 两
    january february march april may june july august september october november december
    """.split()
)
_NUMBER = re.compile(r"[v#]?\d")
_LONGEST_VALUE = 3  # words
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|https?://\S+|[^\W_]+(?:['’.,@:/_-]?[^\W_]+)*|[:=](?=\s)|\?")


def gives_other_value(new: str, known: str) -> bool:
    """Return whether two statements give the same subject different values; in doubt they do not."""
    ours, theirs = _tokens(new), _tokens(known)
    words = [[word.casefold() for word in side] for side in (ours, theirs)]
    start = _shared(words[0], words[1])
    end = _shared(words[0][start:][::-1], words[1][start:][::-1])
    values = [side[start : len(side) - end] for side in (ours, theirs)]
    folded = [[word.casefold() for word in value] for value in values]
    lead, rest = words[0][:start], words[0][len(words[0]) - end :]
    if not (_ADDITIVE | _OF_A_DAY | {"?"}).isdisjoint(words[0] + words[1]):
        return False
    if not set(folded[0]) ^ set(folded[1]) or (max(map(len, values)) > _LONGEST_VALUE and not _are_times(folded)):
        return False
    if {len(value) for value in values} == {0, 1}:  # one word more: only a denial makes it another value
        (word,) = folded[0] or folded[1]
        return word in _NEGATIONS and not _VERBS.isdisjoint([*lead, *rest]) and len(lead) > 1
    if not all(values) or (set(folded[0]) & set(folded[1]) and not _are_times(folded)):
        return False
    at = next((place for place in reversed(range(1, start)) if lead[place] in _VERBS), None)
    return at is not None and _excludes(lead[:at], lead[at:], values)


def _excludes(subject: list[str], said: list[str], values: list[list[str]]) -> bool:
    """Return whether a subject can have only one of two values; `said` is the verb and what else precedes them."""
    folded = [[word.casefold() for word in value] for value in values]
    about = {word.removesuffix("'s") for word in subject}
    while _is_number(said[-1]):  # of a telephone number both may begin with the same digits
        said = said[:-1]
    if subject[0] in _INDEFINITE or about & _OF_MANY or not set(said[1:]) <= _BEFORE_A_VALUE:
        return False
    if frozenset(" ".join(value) for value in folded) in _OPPOSITES:
        return True
    if _INDEFINITE & {*folded[0], *folded[1]} or len({_kind(value) for value in values}) > 1:  # a price is fair, and 30
        return False
    if _kind(values[0]) == "number":
        units = [[word for word in value if not _is_number(word)] for value in folded]
        return units[0] == units[1] and not _is_one_of_several(said, folded)
    if not _PREPOSITIONS.isdisjoint(said):  # a code in Rust is in a repository
        return _kind(values[0]) == "name" and tuple(said[-2:]) in _ONE_PLACE
    known_for = _ATTRIBUTES if _kind(values[0]) == "word" else _ATTRIBUTES | _NAMED_ATTRIBUTES
    return bool(about & known_for) or not _ONE_AT_A_TIME.isdisjoint(said)


def _is_one_of_several(said: list[str], values: list[list[str]]) -> bool:
    """Return whether a number or a day may be one of several: who works on one day works on another."""
    words = {*values[0], *values[1]}
    is_state = said[0] not in {"is", "are", "ist", "sind", ":", "="}
    return (
        any(word.removesuffix("s") in _DAYS for word in words if word.endswith("s"))
        or (is_state and bool(words & _DAYS))
        or (said[-1] == "in" and any(map(str.isdigit, "".join(words))))  # a fix is in 4.1 and in 4.0
        or (said[0] in {"runs", "listens"} and "port" not in said)
    )


def _are_times(values: list[list[str]]) -> bool:
    """Return whether two values are of one form, and of numbers, days and prepositions only: "Tuesday at 10:00"."""
    return len(values[0]) == len(values[1]) and all(
        (_is_number(one) and _is_number(other)) or (one == other and one in _PREPOSITIONS)
        for one, other in zip(*values, strict=True)
    )


def _tokens(text: str) -> list[str]:
    return [word for word in _TOKEN.findall(text.strip()) if word.casefold() not in _FILLERS]


def _shared(one: list[str], other: list[str]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _kind(value: list[str]) -> str:
    """Return of what kind a value is: values of two kinds say two different things."""
    if any(_is_number(word.casefold()) for word in value):
        return "number"
    return "name" if any(map(_is_name, value)) else "word"


def _is_number(word: str) -> bool:
    return bool(_NUMBER.match(word)) or word in _NUMBERS


def _is_name(word: str) -> bool:
    """Return whether a word names one thing; Chinese and Japanese have no capital letters to tell it by."""
    return any(char.isupper() or char in "-_.@/" or "\u3040" <= char <= "\u9fff" for char in word.strip(".,-"))
