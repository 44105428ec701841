"""Asks about what people say of themselves: questions made by rules from English sentences in the first person.

    python -m training.statements TATOEBA.jsonl OUT.jsonl

Writes talks of a few sentences each, in the layout of `dialogues.jsonl`. A sentence of Tatoeba keeps its translation,
so that an English question also has an answer in another language.
"""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path

from training.grammar import NAMES

IRREGULAR = dict(
    pair.split(":")
    for pair in (
        "went:go bought:buy got:get had:have made:make took:take saw:see met:meet found:find lost:lose left:leave "
        "thought:think said:say told:tell knew:know gave:give felt:feel kept:keep began:begin wrote:write "
        "read:read ran:run came:come became:become brought:bring built:build broke:break caught:catch chose:choose "
        "drank:drink drove:drive ate:eat fell:fall fought:fight flew:fly forgot:forget forgave:forgive grew:grow "
        "heard:hear hid:hide held:hold hurt:hurt led:lead learnt:learn lent:lend lay:lie paid:pay put:put quit:quit "
        "rode:ride rose:rise sang:sing sat:sit sold:sell sent:send set:set shook:shake shot:shoot showed:show "
        "slept:sleep spoke:speak spent:spend stood:stand stole:steal swam:swim taught:teach threw:throw "
        "understood:understand woke:wake wore:wear won:win dreamt:dream burnt:burn cut:cut dug:dig drew:draw fed:feed "
        "hit:hit let:let lit:light meant:mean spread:spread swore:swear tore:tear bit:bite blew:blow did:do "
        "hoped:hope used:use agreed:agree"
    ).split()
)
MUTE = re.compile(
    r"(?:[^aeiou][aeiou][bcdgkmpstvz]|[aeiou](?:s|v|z)|[cgvzu]|[dtbpgkf]l|at|ir|ar)$"
)  # moved, not helped
SPOKEN = ("sit", "dit", "xit", "mit", "ait", "rit", "en", "er", "on", "el", "op", "ok", "ck", "sh", "ch", "x")
DOUBLED = re.compile(r"([bdgklmnprt])\1$")
PRESENT = (
    "love|like|enjoy|hate|prefer|live|work|play|drive|collect|read|watch|teach|study|speak|eat|drink|miss|wear|know|hope"
    "|plan|intend|think|believe|use|run|swim|cook|paint|write"
)
SYNONYMS = {
    "buy": "purchase;get", "love": "adore", "like": "enjoy;appreciate", "enjoy": "like;appreciate",
    "hate": "dislike", "want": "wish", "go": "travel;head", "see": "watch;notice", "start": "begin;take up",
    "begin": "start", "finish": "complete", "live": "reside", "work": "be employed", "eat": "consume",
    "meet": "run into;get to know", "talk": "speak", "help": "support;assist", "give": "hand;present", "make": "create",
    "learn": "pick up", "teach": "instruct", "lose": "misplace", "find": "come across;discover", "leave": "quit",
    "move": "relocate", "visit": "go to see", "try": "attempt", "choose": "pick", "decide": "make up their mind",
    "quit": "give up", "fix": "repair", "cook": "prepare", "win": "come first in", "get": "receive;obtain",
    "mother": "mum", "father": "dad", "wife": "partner", "husband": "partner", "son": "child", "daughter": "child",
    "kids": "children", "house": "home", "car": "vehicle", "job": "work", "doctor": "physician", "dog": "pet",
    "cat": "pet", "holiday": "vacation", "trip": "journey", "picture": "photo", "photo": "picture", "movie": "film",
    "film": "movie", "bike": "bicycle", "phone": "mobile", "money": "cash", "friend": "pal", "boss": "manager",
    "apartment": "flat", "flat": "apartment", "shop": "store", "store": "shop", "school": "class", "book": "novel",
    "present": "gift", "gift": "present", "ill": "sick", "sick": "unwell", "happy": "glad", "sad": "unhappy",
    "afraid": "scared", "tired": "exhausted", "big": "large", "small": "little", "old": "aged", "angry": "mad",
}  # fmt: skip
WHEN = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last \w+|next \w+|this (?:morning|week|month|year|weekend)|\w+ ago"
    r"|on \w+day|in (?:19|20)\d\d)\b"
)
OPENING = re.compile(r"(?i)^(?:well|so|oh|yes|yeah|no|actually|and|but|also|hey|hi|hello|sure|thanks|wow|haha)[,! ]+")
FIRST_PERSON = re.compile(r"(?:I|We|My|Our)\b.{12,}")
LONGEST = 160


def base_form(past: str) -> str:
    """The infinitive of a verb in the past tense, or nothing where it is none."""
    if past in IRREGULAR:
        return IRREGULAR[past]
    if not past.endswith("ed") or len(past) < 5:
        return ""
    stem = past[:-2]
    if stem.endswith("i"):
        return stem[:-1] + "y"
    if DOUBLED.search(stem) and not stem.endswith(("ll", "ss")):
        return stem[:-1]
    if MUTE.search(stem) and not stem.endswith(SPOKEN):
        return stem + "e"
    return stem


def others(text: str, name: str) -> str:
    """A part of a sentence in the first person, as others would say it."""
    text = re.sub(r"\bmy\b|\bour\b", f"{name}'s" if " my " not in f" {text} "[5:] else "their", text)
    text = re.sub(r"\bmyself\b", "themselves", text)
    text = re.sub(r"\bmine\b", "theirs", text)
    return re.sub(r"\b(?:me|us|I|we)\b", name, text)


def reworded(question: str, choice: random.Random) -> str:
    """The question with one word of similar meaning, where there is one."""
    words = [word for word in re.findall(r"\b[a-z]+\b", question) if word in SYNONYMS]
    if not words or choice.random() < 0.35 or question.endswith(" like?"):
        return question
    word = choice.choice(words)
    return re.sub(rf"\b{word}\b", choice.choice(SYNONYMS[word].split(";")), question, count=1)


ADVERBS = re.compile(r"(?i)\b(?:really|just|also|actually|always|never|often|usually|finally|recently|still|already) ")
SOME = "(?:a|an|no|some|two|three|four|many|my)"
WANTS = {"decided": "decide", "tried": "try", "had": "have", "used": "use", "'d like": "want", "would like": "want"}
# The first pattern that fits a clause asks its questions. `rest` is said as others say it, `past` becomes `base`.
RULES = tuple(
    (re.compile(f"(?i){pattern}"), questions.split(" / "))
    for pattern, questions in (
        (
            r"(?:i|we)(?:'m|'re| am| are) (?P<plan>(?:going|planning|hoping|about) to) (?P<verb>\w+) ?(?P<rest>.*)",
            "What is {N} {plan} {verb}? / What are {N}'s plans? / Does {N} plan to {verb} {rest}?",
        ),
        (
            r"(?:i|we)(?:'m|'re| am| are) (?P<ing>\w+ing)\b ?(?P<rest>.*)",
            "What is {N} {ing}? / What is {N} doing? / Is {N} {ing} {rest}?",
        ),
        (
            r"(?:i|we)(?:'ve| have) been (?P<ing>\w+ing)\b ?(?P<rest>.*?) ?(?:for|since) [\w ]+",
            "How long has {N} been {ing} {rest}? / Since when has {N} been {ing}?",
        ),
        (
            r"(?:i|we)(?:'ve| have) been (?P<ing>\w+ing)\b ?(?P<rest>.*)",
            "What has {N} been {ing}? / Has {N} been {ing} {rest}?",
        ),
        (r"i(?:'m| am) an? (?P<rest>.+)", "What does {N} do? / What kind of person is {N}? / Is {N} a {rest}?"),
        (r"i(?:'m| am) (?P<rest>.+)", "How does {N} feel? / Is {N} {rest}?"),
        (r"i(?: was|'d been) (?P<rest>.+)", "How did {N} feel? / Was {N} {rest}? / When was {N} {rest}?"),
        (
            r"(?:i|we) ?(?P<want>want|need|hope|plan|intend|would like|'d like|have) to (?P<verb>\w+) ?(?P<rest>.*)",
            "What does {N} {want} to {verb}? / What does {N} {want} to do? / Why does {N} {want} to {verb} {rest}?",
        ),
        (
            r"(?:i|we) (?P<want>decided|tried|had|used) to (?P<verb>\w+) ?(?P<rest>.*)",
            "What did {N} {want} to {verb}? / What did {N} {want} to do? / Why did {N} {want} to {verb} {rest}?",
        ),
        (
            rf"(?:i|we)(?:'ve| have)? (?:got|have|own) (?P<rest>{SOME} .+)",
            "What does {N} have? / Does {N} have {rest}? / {N}'s {rest}",
        ),
        (
            r"(?:i|we) (?P<helper>can't|didn't|couldn't|won't) (?P<verb>\w+) ?(?P<rest>.*)",
            "What {helper} {N} {verb}? / Why {helper} {N} {verb} {rest}?",
        ),
        (
            r"(?:i|we) (?:don't|do not) (?P<verb>\w+) ?(?P<rest>.*)",
            "What doesn't {N} {verb}? / Why doesn't {N} {verb} {rest}?",
        ),
        (
            rf"(?:i|we) (?P<verb>{PRESENT}) (?P<where>in|at) (?P<rest>.+)",
            "Where does {N} {verb}? / Does {N} {verb} {where} {rest}?",
        ),
        (rf"(?:i|we) (?P<verb>{PRESENT}) (?P<rest>.+)", "What does {N} {verb}? / Does {N} {verb} {rest}?"),
        (
            r"(?:i|we) (?P<past>\w+) (?:back )?(?P<where>to|in|at|into|from) (?!be\b)(?P<rest>.+)",
            "Where did {N} {base}? / When did {N} {base} {where} {rest}? / Did {N} {base} {where} {rest}?",
        ),
        (
            r"(?:i|we) (?P<past>\w+) ?(?P<rest>.*)",
            "What did {N} {base}? / When did {N} {base} {rest}? / Did {N} {base} {rest}?",
        ),
        (
            r"(?:my|our) (?P<thing>[\w' -]{3,30}?) (?P<is>is|are|was|were) (?P<rest>.+)",
            "What do we know about {N}'s {thing}? / What {is} {N}'s {thing}? / {N}'s {thing}",
        ),
        (
            r"(?:my|our) (?P<thing>[\w' -]{3,24}?) (?P<past>\w{3,}ed|went|came|got|gave|made|told|said|took|left)\b.*",
            "What did {N}'s {thing} {base}? / What happened with {N}'s {thing}? / When did {N}'s {thing} {base}?",
        ),
    )
)


def clause_questions(clause: str, name: str) -> list[str]:
    """Questions that one clause answers, general ones first."""
    clause = ADVERBS.sub("", clause).strip(" ,;.!-")
    for pattern, questions in RULES:
        matched = pattern.match(clause)
        if not matched:
            continue
        slots = {"N": name, **matched.groupdict()}
        slots["rest"] = others(slots.get("rest") or "", name)
        slots["want"] = WANTS.get(slots.get("want", ""), slots.get("want", ""))
        if "past" in slots:
            slots["base"] = base_form(slots["past"].lower())
            if not slots["base"]:
                continue
            slots["rest"] = WHEN.sub("", slots["rest"]).strip()
        return [question.format(**slots) for question in questions]
    return []


def statement_questions(text: str, name: str, choice: random.Random, most: int = 2) -> list[str]:
    """Questions that somebody could ask later to hear what `name` says here."""
    found: list[str] = []
    for sentence in re.findall(r"[^.!?]+(?=[.!?]|$)", text):
        reason = re.split(r"(?i),? because ", OPENING.sub("", sentence.strip()))
        asked = re.match(r"(?i)i (\w+) (.+)", reason[0])
        if len(reason) == 2 and asked and (base := base_form(asked[1].lower())):
            found.append(f"Why did {name} {base} {others(asked[2], name)}?")
        for clause in re.split(r"(?i),? (?:but|so|and)(?= (?:i|i'm|my|we)\b)", reason[0])[:3]:
            if 3 <= len(clause.split()) <= 22:
                found += clause_questions(clause.strip(), name)
    distinct = [re.sub(r"\s+", " ", question).replace(" ?", "?") for question in dict.fromkeys(found)]
    chosen = choice.sample(distinct, min(most, len(distinct)))
    return [reworded(question, choice) for question in chosen if 2 < len(question.split()) < 20]


def main(tatoeba: Path, out: Path) -> None:
    """Write talks of sentences in the first person."""
    choice = random.Random(17)
    sentences = {}
    for line in tatoeba.read_text(encoding="utf8").splitlines():
        _, language, _, _, text, english, *_ = json.loads(line)
        is_told = FIRST_PERSON.match(english) and len(english) <= LONGEST
        if is_told and ("Tom" not in english or choice.random() < 0.2):
            sentences.setdefault(english, (language, text))
    rows = list(sentences.items())
    choice.shuffle(rows)
    with out.open("w", encoding="utf8") as file:
        for at in range(0, len(rows), 12):
            name, talk = choice.choice(NAMES), []
            for english, (language, text) in rows[at : at + 12]:
                who = name if choice.random() < 0.7 else "the user"
                said = f"{name}: {english}" if who == name else english
                talk += [[language, text, [], said, asked] for asked in statement_questions(english, who, choice)]
            if len(talk) > 3:
                file.write(json.dumps(talk, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
