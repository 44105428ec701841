"""Compares statements: which say the same, which are similar, and which give another value for the same subject."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from notewell.text.entries import find_entries, without_comments
from notewell.types import Citation

SAME = 0.8  # share of words in common from which two statements say the same, if no name, number or `not` differs
SIMILAR = 0.5  # from here on a person should look at both
MOST_PIECES = 400  # statements of one note that are compared; a diary of years has more, and the newest come last

_WORD = re.compile(r"[^\W_]+(?:['’.@:/_-]?[^\W_]+)*")
_BULLET = re.compile(r"^\s*+(?:[-*+>]|\d{1,9}[.)])\s+")
_NEGATIONS = frozenset("no not never none nothing without cannot nicht kein keine nie pas jamais nunca".split())
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")
# Words that carry no statement of their own: without them a reworded sentence is seen to be the same.
_LIGHT = frozenset(
    "a an the is are was were be been it its this that of to in on at for and or by with as our my".split()
)


@dataclass(frozen=True, slots=True)
class Known:
    """A statement of a note that is similar to a new text."""

    path: str
    line: int  # 1-based
    text: str
    likeness: float  # 0 to 1; 1 is the same words
    same: bool  # says the same: writing it again would add nothing
    differs: bool = False  # gives the same subject another value

    @property
    def citation(self) -> str:
        return str(Citation(self.path, self.line))


def similar_statements(text: str, path: str, note: str, *, first_line: int = 1) -> list[Known]:
    """Return the statements of a note, or of a part of it, that are similar to `text`, the most similar first."""
    words = _words(text)
    if not words:
        return []
    found = []
    for line, piece in _pieces(_current_lines(note), text):
        likeness, same = _compare(words, _words(piece))
        differs = not same and 0 < likeness < 1 and gives_other_value(text, piece)
        if likeness >= SIMILAR or differs:
            found.append(Known(path, first_line + line, piece.strip(), round(likeness, 3), same, differs))
    return sorted(found, key=_most_telling)


def _current_lines(note: str) -> list[str]:
    """Return the lines of a note; those of comments and of entries that were replaced are blank."""
    found = find_entries(note)
    lines = without_comments(note, found).split("\n")
    for entry in found.entries:
        if entry.replaced_by:
            lines[entry.first_line - 1 : entry.last_line] = [""] * (entry.last_line - entry.first_line + 1)
    return lines


def _most_telling(known: Known) -> tuple[bool, bool, float, int]:
    return not known.same, not known.differs, -known.likeness, known.line


def most_similar(found: Iterable[Known], limit: int) -> tuple[Known, ...]:
    """Return the most similar statements, each place once."""
    places: dict[tuple[str, int], Known] = {}
    for known in sorted(found, key=_most_telling):
        places.setdefault((known.path, known.line), known)
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
    """Return the words that count, folded, each with how it was written."""
    written = {word.casefold(): word for word in _WORD.findall(text)}
    return {word: shown for word, shown in written.items() if word not in _LIGHT} or written


def _compare(new: dict[str, str], known: dict[str, str]) -> tuple[float, bool]:
    shared = new.keys() & known.keys()
    if not shared:
        return 0.0, False
    likeness = len(shared) / len(new.keys() | known.keys())
    differing = [(word, new.get(word) or known[word]) for word in new.keys() ^ known.keys()]
    return likeness, likeness >= SAME and not any(_decides(word, shown) for word, shown in differing)


def _decides(word: str, shown: str) -> bool:
    """Return whether a word alone changes what a sentence states: a number, a name, a negation."""
    return word in _NEGATIONS or shown != word or any(map(str.isdigit, word))


# --- another value for the same subject ----------------------------------------------------------

# What is reported must be right nine times out of ten, so everything here names what counts, not what does not: verbs
# that hold for a while and of one thing at a time, values that exclude each other. evals/subject_pairs.py measures it.
_COPULAS = frozenset("is are = : ist sind est sont es son está 是 为 為".split())
_PAST = frozenset("was were war waren".split())  # with a participle they tell of an event, of which there may be many
_STATES = frozenset(
    """
    lives works runs starts begins ends opens closes expires costs weighs lasts takes prefers belongs listens
    equals wohnt lebt arbeitet beginnt endet öffnet schließt kostet heißt dauert liegt habite travaille coûte commence
    vive trabaja cuesta empieza 叫 住
    """.split()
)
_ONE_AT_A_TIME = frozenset("prefers called named heißt 叫".split())
# Nouns that have one value: of them, any other word is another value.
_ATTRIBUTES = frozenset(
    """
    password passphrase passcode pin code name nickname title address phone number email owner lead manager landlord
    dentist doctor wifi ssid deadline
    status version branch port host hostname url provider editor shell theme language timezone colour color favourite
    favorite preferred default birthday capital currency budget price rent salary size timeout limit passwort name
    adresse farbe preis miete geburtstag version sprache mot nom adresse couleur prix
    """.split()
)
_DONE = frozenset("stored hosted located based serviced maintained owned managed kept assigned".split())
_BEFORE_A_VALUE = _DONE | frozenset(
    """
    at in on by due until port called named um im am bei von bis à en em des del
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
_FILLERS = frozenset("the now currently still today der die das jetzt le la les el los las".split())
_INDEFINITE = frozenset("a an one ein eine einen un une una uno".split())
_ADDITIVE = frozenset(
    "also too another additionally both sometimes often usually or either auch weitere manchmal oft aussi".split()
)
_OF_MANY = frozenset(  # of whom one may have several
    """
    sister brother sibling son daughter child friend colleague neighbour neighbor cousin aunt uncle customer option
    flight train bus ferry tram error bug issue warning order delivery call step page line question today
    schwester bruder sohn tochter freund freundin kollege kollegin
    """.split()
)
_NUMBERS = frozenset(
    """
    two three four five six seven eight nine ten eleven twelve first second third fourth fifth sixth seventh eighth
    ninth tenth zwei drei vier fünf sechs sieben acht neun zehn elf zwölf 一 二 三 四 五 六 七 八 九 十 两
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december montag dienstag mittwoch donnerstag freitag samstag sonntag
    """.split()
)
_LONGEST_VALUE = 3  # words
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+(?:['’.,@:/_-]?[^\W_]+)*|[:=](?=\s)|\?")


def gives_other_value(new: str, known: str) -> bool:
    """Return whether two statements give the same subject different values; in doubt they do not."""
    ours, theirs = _tokens(new), _tokens(known)
    words = [[word.casefold() for word in side] for side in (ours, theirs)]
    start = _shared(words[0], words[1])
    end = _shared(words[0][start:][::-1], words[1][start:][::-1])
    values = [side[start : len(side) - end] for side in (ours, theirs)]
    folded = [[word.casefold() for word in value] for value in values]
    lead, rest = words[0][:start], words[0][len(words[0]) - end :]
    if any(word in _ADDITIVE or word == "?" for side in words for word in side):
        return False
    if not set(folded[0]) ^ set(folded[1]) or max(map(len, values)) > _LONGEST_VALUE:
        return False
    if {len(value) for value in values} == {0, 1}:  # one word more: only a denial makes it another value
        (word,) = folded[0] or folded[1]
        return word in _NEGATIONS and any(each in _COPULAS | _STATES for each in [*lead, *rest]) and len(lead) > 1
    if not all(values) or set(folded[0]) & set(folded[1]):
        return False
    at = next((place for place in reversed(range(1, start)) if lead[place] in _COPULAS | _STATES | _PAST), None)
    if at is None:
        return False
    return _excludes(ours[:at], lead[at], lead[at + 1 :], values)


def _excludes(subject: list[str], verb: str, between: list[str], values: list[list[str]]) -> bool:
    """Return whether a subject can have only one of two values: what stands before them says so, or their kind does."""
    folded = [[word.casefold() for word in value] for value in values]
    about = {word.casefold().removesuffix("'s") for word in subject}
    if _may_be_many(subject, about, verb, between, folded):
        return False
    if frozenset(" ".join(value) for value in folded) in _OPPOSITES:
        return True
    numbers = [[word for word in value if _is_number(word)] for value in folded]
    if all(numbers):  # of the same unit: a lake is 4 km away and 12 m deep
        return set(folded[0]) - set(numbers[0]) == set(folded[1]) - set(numbers[1])
    if _INDEFINITE & {*between, *folded[0], *folded[1]}:  # a thing is many things
        return False
    if verb in _ONE_AT_A_TIME or not _ONE_AT_A_TIME.isdisjoint(between) or about & _ATTRIBUTES:
        return True
    # Who lives in one town does not live in another; but who is Polish may be Catholic, and in two clubs.
    is_name = _is_name if verb in _STATES or not _DONE.isdisjoint(between) else _is_identifier
    return not any(numbers) and all(any(map(is_name, value)) for value in values)


def _may_be_many(subject: list[str], about: set[str], verb: str, between: list[str], values: list[list[str]]) -> bool:
    """Return whether there may be several of the subject, or of what is said of it."""
    return (
        not set(between) <= _BEFORE_A_VALUE | _INDEFINITE
        or (verb in _PAST and bool(between))
        or subject[0].casefold() in _INDEFINITE
        or bool(about & _OF_MANY)
        or any(word.endswith("days") for value in values for word in value)  # Mondays, weekdays
        # Somebody works on one day, and a shop opens on another.
        or (verb in _STATES - _ONE_AT_A_TIME and "on" in between and "port" not in between)
        or (verb == "runs" and "port" not in between)
    )


def _tokens(text: str) -> list[str]:
    return [word for word in _TOKEN.findall(text.strip()) if word.casefold() not in _FILLERS]


def _shared(one: list[str], other: list[str]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _is_number(word: str) -> bool:
    return any(map(str.isdigit, word)) or word in _NUMBERS


def _is_name(word: str) -> bool:
    return any(map(str.isupper, word)) or _is_identifier(word)


def _is_identifier(word: str) -> bool:
    return any(mark in word.strip(".,-") for mark in "-_.@/") or any(map(str.isdigit, word))
