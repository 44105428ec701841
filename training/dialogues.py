"""Makes questions about the turns of openly licensed dialogues, and takes questions from reading-comprehension sets.

    python -m training.dialogues SGD_FOLDER JSQUAD.json... IAPP.jsonl... OUT_FOLDER

Writes `dialogues.jsonl` (one talk a line) and `questions.jsonl` (in the layout of the pair files).
"""

import json
import random
import re
import sys
from pathlib import Path

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


def jsquad(path: Path) -> list[list]:
    """Japanese questions with their paragraphs."""
    pairs = []
    for article in json.loads(path.read_text())["data"]:
        for paragraph in article["paragraphs"]:
            text = paragraph["context"].split("[SEP]")[-1].strip()
            pairs += [["qd", "ja", "ja", "jsquad", asked["question"], text[:PASSAGE]] for asked in paragraph["qas"]]
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
    for path in files:
        pairs += jsquad(path) if path.suffix == ".json" else iapp(path)
    for name, rows in (("dialogues.jsonl", talks), ("questions.jsonl", pairs)):
        (out / name).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf8")
        print(name, len(rows))


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
