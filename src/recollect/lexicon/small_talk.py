"""English words that carry a conversation but tell little: greetings, praise, and verbs and nouns that fit anywhere.

They are searched for like any other. They only do not count where it matters how much a remark says.
"""

from __future__ import annotations

from recollect.lexicon.function_words import ENGLISH_FUNCTION_WORDS
from recollect.lexicon.terms import stem

_SMALL_TALK = """
    absolutely actually ago already always amazing anything around ask away awesome back bad beautiful believe best
    better big bit bye came catch certainly chat check come congrats congratulations cool day days definitely
    different easy especially even ever everything exactly excited fantastic feel feeling felt find first found fun
    gave get getting give given gives glad go going gone good great guess guy guys haha happy hard hear heard hello
    help helps hey hi honestly hope idea important incredible keep kind know last later let life like liked
    literally little lol long look looking looks lot lots love loved lovely lucky made make makes making many maybe
    mean much need needed never new next nice nothing often oh ok okay one ones own part people perfect person place
    please point probably proud real really right say see share something soon sorry sort sound sounds special start
    started still stuff super sure sweet take taken takes talk talking tell thank thanks thing things think thought
    time times together told took totally true try trying want wanted way ways welcome well went whole wish
    wonderful work wow yeah yep yes yup able
    """

# Stems; function words say nothing either.
TELLING_LITTLE = ENGLISH_FUNCTION_WORDS | frozenset(map(stem, _SMALL_TALK.split()))
