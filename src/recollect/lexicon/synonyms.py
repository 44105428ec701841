"""A term in, terms of words that mean about the same out: who asks for the `physician` may have noted the `doctor`.

Everyday English, written for this purpose. Vectors know far more; but words are all there is until notes are embedded,
and a word that hardly any note holds is the one that finds nothing.
"""

from __future__ import annotations

from functools import cache

from recollect.lexicon.terms import stem

# Words between semicolons mean about the same, each to each.
_GROUPS = """
    child kid toddler baby infant; mother mom mum parent; father dad parent; husband spouse partner; wife spouse
    partner; marry wedding marriage; sibling brother sister; relative family;
    buy purchase shop order; sell sale; job employment career occupation work; boss manager employer; colleague
    coworker teammate; salary pay wage income; company firm business employer; fire layoff dismiss; hire recruit;
    car vehicle automobile; bike bicycle cycling; plane flight airplane; train railway; trip journey travel vacation
    holiday; hotel accommodation hostel; luggage suitcase baggage;
    doctor physician clinic; dentist dental tooth; hospital clinic; illness disease sick; medicine medication drug
    pill; pain ache hurt; injury injure wound; diet nutrition food; exercise workout fitness gym training;
    movie film cinema; show series episode; song music track; band group; book novel; author writer; picture photo
    photograph image; painting art artwork; photo image picture; hobby pastime interest; game gaming play; sport
    athletic;
    house home apartment flat; rent lease landlord; garden yard backyard; furniture sofa couch; kitchen cook
    cooking; clean tidy; repair fix mend; build construct; move relocate;
    meal dinner lunch food; dish recipe meal; dessert cake sweet; drink beverage; restaurant cafe diner; hungry eat;
    dog puppy pet; cat kitten pet; animal pet;
    friend buddy pal; meet encounter; talk speak chat conversation; call phone; message text email; letter mail;
    argue argument quarrel; help assist support; advise advice recommend suggest;
    happy glad joy; sad upset unhappy; angry mad furious; afraid scared fear; worry anxious anxiety stress; tired
    exhausted; proud pride; surprise astonish;
    start begin launch; end finish complete; stop quit cease; win victory; lose defeat; try attempt; learn study;
    teach instruct train; teacher instructor professor; student pupil; school college university; class course
    lesson; exam test; degree diploma; award prize trophy;
    money cash fund; cost price expense; bill invoice; refund reimburse; tax levy; save saving; loan mortgage
    credit; donate donation charity give; volunteer charity;
    computer laptop pc; phone mobile smartphone; password credential login; error bug fault failure; crash outage
    failure; deploy release rollout; server host machine; database db; delete remove erase; create make; update
    upgrade; config configuration setting; document file; meeting appointment call;
    big large huge; small little tiny; fast quick rapid; old elderly ancient; new recent; beautiful pretty
    lovely; smart clever intelligent; strange odd weird; important crucial essential; difficult hard tough; easy
    simple;
    goal aim target objective; plan schedule; idea concept; problem issue trouble; cause reason; result outcome;
    event occasion; party celebration celebrate; gift present; birthday anniversary; religion faith church; belief
    faith; dream wish aspiration; fear phobia; decision choice decide; promise vow; success achievement accomplish;
    competition contest tournament; inspire motivate encourage; enjoy like; dislike hate;
    run jog running; walk hike stroll; swim pool; climb climbing mountain; fish fishing; camp camping tent; beach
    ocean sea coast; forest wood; lake pond; snow ski; rain weather storm;
    clothes clothing outfit dress; shoe sneaker boot; necklace jewelry pendant; hair haircut; tattoo ink;
    city town; country nation; street road; country countryside rural; store shop; airport flight; neighbor
    neighbour neighborhood;
"""


def synonyms(term: str) -> tuple[str, ...]:
    """Return the terms of words that mean about the same as those of this term."""
    return _table().get(term, ())


@cache
def _table() -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {}
    for group in _GROUPS.split(";"):
        stems = [stem(word) for word in group.split()]
        for one in stems:
            others = (other for other in stems if other != one)
            table[one] = tuple(dict.fromkeys((*table.get(one, ()), *others)))
    return table
