"""Makes questions about the turns of openly licensed dialogues, and takes questions from reading-comprehension sets.

    python -m training.dialogues SGD_FOLDER SQUAD_LAYOUT.json... IAPP.jsonl... PERSONA_CHAT.csv... OUT_FOLDER

Writes `dialogues.jsonl` and `chats.jsonl` (one talk a line) and `questions.jsonl` (in the layout of the pair files).
"""

import csv
import itertools
import json
import random
import re
import sys
from pathlib import Path

from training.grammar import NAMES as FRIENDS
from training.statements import statement_questions

NAMES = "user user user Priya Oskar Zainab Tomasz Keiko Farida Linus Odile Vikram".split()
MOST_TALKS = 5_000
PASSAGE = 900


def words(name: str) -> str:
    """`recipient_account_name` and `FindRestaurants` as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", re.sub(r"_\d+$", "", name)).lower()


def schema(folder: Path) -> dict[str, dict[str, str]]:
    """What each slot of each service means."""
    services = json.loads((folder / "schema.json").read_text())
    return {
        service["service_name"]: {slot["name"]: slot["description"] for slot in service["slots"]}
        for service in services
    }


def questions(service: str, slot: str, meaning: str, value: str, name: str, choice: random.Random) -> list[str]:
    """Questions that a turn answers which states one value."""
    who = "I" if name == "user" else name
    did, thing, about = f"did {who}", words(slot), words(service)
    made = [
        f"What {thing} {did} want for the {about}?",
        f"{about} {thing}",
        f"{meaning}?",
        f"What was the {thing} {who} mentioned when we talked about {about}?",
    ]
    if "date" in slot or "time" in slot or "day" in slot:
        made += [f"When {did} want the {about}?", f"For what {thing} was the {about}?"]
    if slot in ("city", "location", "area", "from", "to", "destination", "origin", "where_to"):
        made += [f"Where {did} want the {about}?", f"In which place {did} look for {about}?"]
    if not value.isdigit() and len(value) > 3 and choice.random() < 0.3:
        made.append(f"Who asked about {value} ({about})?" if name != "user" else f"What did I say about {value}?")
    return choice.sample(made, 3)


def sgd_talks(  # noqa: C901 - one pass over nested records
    folder: Path, choice: random.Random
) -> list[list]:
    """Dialogues whose turns state values that no other turn of the dialogue states for the same slot."""
    slots = schema(folder)
    talks = []
    dialogues = [
        dialogue for path in sorted(folder.glob("dialogues_*.json")) for dialogue in json.loads(path.read_text())
    ]
    choice.shuffle(dialogues)
    for dialogue in dialogues[:MOST_TALKS]:
        name = choice.choice(NAMES)
        stated: dict[tuple[str, str], list[int]] = {}
        values = {}
        for number, turn in enumerate(dialogue["turns"]):
            for frame in turn["frames"]:
                for action in frame["actions"]:
                    if action["act"] in ("INFORM", "OFFER", "CONFIRM") and action["values"] and action["slot"]:
                        key = (frame["service"], action["slot"])
                        stated.setdefault(key, []).append(number)
                        values[key] = action["values"][0]
        asked: dict[int, list[str]] = {}
        for (service, slot), numbers in stated.items():
            meaning = slots.get(service, {}).get(slot)
            if meaning and len(set(numbers)) == 1 and dialogue["turns"][numbers[0]]["speaker"] == "USER":
                asked[numbers[0]] = questions(service, slot, meaning, values[service, slot], name, choice)
        messages = []
        for number, turn in enumerate(dialogue["turns"]):
            speaker = name if turn["speaker"] == "USER" else "assistant"
            if number in asked:
                messages.append(["en", f"{speaker}: {turn['utterance']}", asked[number], "", ""])
            elif speaker == "assistant" and choice.random() < 0.5 and len(turn["utterance"]) > 60:
                messages.append(["en", f"{speaker}: {turn['utterance']}", [], "", ""])
        if sum(bool(message[2]) for message in messages) > 1:
            talks.append(messages)
    return talks


THIRD_PERSON = (
    (r"\b(are|were) you\b", lambda m: {"are": "is", "were": "was"}[m[1].lower()] + " {N}"),
    (r"\b(do|have) you\b", lambda m: {"do": "does", "have": "has"}[m[1].lower()] + " {N}"),
    (r"\byou(?:'re| are)\b", lambda _: "{N} is"),
    (r"\byou(?:'ve| have)\b", lambda _: "{N} has"),
    (r"\byour\b", lambda _: "{N}'s"),
    (r"\byou\b", lambda _: "{N}"),
)
EMPTY_QUESTION = re.compile(
    r"(?i)how are you|(how|what) about you|how's it going|how are things|and you|really\?|what's up|are you sure"
    r"|\b(it|that|them|this|so|too|one)\?$"
)
SAME_IN_QUESTION = "like love enjoy hate prefer want play work live eat drive collect need own write read watch".split()
COMMON = set(
    "i my me a an the to and of in is am are was have has had for on with that it at be do not very so".split()
)


def about(question: str, name: str) -> str:
    """The question that somebody was asked, asked of somebody else later."""
    for pattern, made in THIRD_PERSON:
        question = re.sub(pattern, made, question, flags=re.IGNORECASE)
    return (question[:1].upper() + question[1:]).replace("{N}", name)


def last_question(turn: str) -> str:
    """The last question of a turn that asks for something of its own."""
    asked = [re.sub(r"(?i)^(so|oh|well|and|but)[, ]+", "", part.strip()) for part in re.findall(r"[^.!?]+\?", turn)]
    asked = [part for part in asked if len(part.split()) > 3 and not EMPTY_QUESTION.search(part)]
    return asked[-1] if asked else ""


def fact_questions(fact: str, name: str) -> list[str]:
    """What could be asked to hear a fact that somebody states about themselves."""
    fact = fact.strip().rstrip(".")
    if match := re.match(r"(?i)my (.+?) (is|are|was) (?!not)", fact):
        return [f"What {match[2]} {name}'s {match[1]}?"]
    if match := re.match(r"(?i)i(?:'m| am) (.+)", fact):
        return [f"Is {name} {match[1]}?", f"{name} {match[1]}"]
    if match := re.match(r"(?i)i have (.+)", fact):
        return [f"Does {name} have {match[1]}?", f"{name}'s {match[1]}"]
    if (match := re.match(r"(?i)i (\w+) (.+)", fact)) and match[1].lower() in SAME_IN_QUESTION:
        return [f"Does {name} {match[1]} {match[2]}?"]
    return []


def content(text: str) -> set[str]:
    """The words of a text that say something."""
    return {word[:5] for word in re.findall(r"[a-z']+", text.lower())} - COMMON


def chat_talks(path: Path, choice: random.Random) -> list[list]:
    """Small talk between two people: what one asks and the other answers, and facts about them where they are told."""
    talks = []
    with path.open(encoding="utf8", newline="") as file:
        for *personas, chat in list(csv.reader(file))[1:]:
            names = choice.sample(FRIENDS, 2)
            turns = [(int(who) - 1, text) for who, text in re.findall(r"User ([12]): (.+)", chat)]
            asked: dict[int, list[str]] = {}
            for at, ((who, text), (other, answer)) in enumerate(itertools.pairwise(turns)):
                question = last_question(text)
                if question and other != who and len(answer.split()) > 4:
                    asked.setdefault(at + 1, []).append(about(question, names[other]))
            for who, persona in enumerate(personas[:2]):
                for fact in persona.splitlines():
                    words_of = content(fact)
                    shared = [len(words_of & content(text)) if by == who else 0 for by, text in turns]
                    if shared and max(shared) > 1 and shared.count(max(shared)) == 1:
                        asked.setdefault(shared.index(max(shared)), []).extend(fact_questions(fact, names[who]))
            for at, (who, text) in enumerate(turns):
                if made := statement_questions(text, names[who], choice):
                    asked.setdefault(at, []).extend(made)
            messages = [
                ["en", f"{names[who]}: {text}", asked.get(at, []), "", ""]
                for at, (who, text) in enumerate(turns)
                if at in asked or len(text.split()) > 5
            ]
            if sum(bool(message[2]) for message in messages) > 1:
                talks.append(messages)
    return talks


SQUAD_LANGUAGES = {"jsquad": "ja", "arcd": "ar"}


def squad(path: Path) -> list[list]:
    """Questions with their paragraphs, from files in the layout of SQuAD that are named after the set."""
    source = re.split("[-_.]", path.name)[0]
    language = SQUAD_LANGUAGES[source]
    pairs = []
    for article in json.loads(path.read_text(encoding="utf8"))["data"]:
        for paragraph in article["paragraphs"]:
            text = paragraph["context"].split("[SEP]")[-1].strip()[:PASSAGE]
            pairs += [["qd", language, language, source, asked["question"].strip(), text] for asked in paragraph["qas"]]
    return pairs


def iapp(path: Path) -> list[list]:
    """Thai questions with the part of the article that answers them."""
    pairs = []
    for line in path.read_text().splitlines():
        record = json.loads(line)
        answers = record["answers"]
        start = (answers["answer_start"] if isinstance(answers, dict) else [answers[0]["answer_start"]])[0]
        begin = max(0, start - PASSAGE // 2)
        pairs.append(["qd", "th", "th", "iapp", record["question"], record["context"][begin : begin + PASSAGE]])
    return pairs


def main(arguments: list[Path]) -> None:
    """Write the talks and the questions."""
    sgd, *files, out = arguments
    choice = random.Random(17)
    talks = sgd_talks(sgd, choice)
    pairs = []
    chats = []
    for path in files:
        if path.suffix == ".csv":
            chats += chat_talks(path, choice)
        else:
            pairs += squad(path) if path.suffix == ".json" else iapp(path)
    for name, rows in (("dialogues.jsonl", talks), ("chats.jsonl", chats), ("questions.jsonl", pairs)):
        (out / name).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf8")
        print(name, len(rows))


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
