"""Makes questions about everyday messages: from talks and templates written by hand, and from frames of English verbs.

A group is one talk: messages that are easy to confuse, each with the questions it alone answers.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Message:
    """What somebody says, the questions it answers, and both in English where they were written in another language."""

    language: str
    text: str
    questions: tuple[str, ...]
    english: str = ""
    english_question: str = ""


@dataclass
class Template:
    """Sentences with slots."""

    text: str
    questions: list[str] = field(default_factory=list)
    english: str = ""


def read_talks(path: Path) -> list[list[Message]]:
    """The talks of one language, in the order of the file."""
    language = path.stem.split("-")[1]
    talks: list[list[Message]] = []
    for block in re.split(r"\n(?=# talk)", path.read_text(encoding="utf8")):
        talk: list[Message] = []
        for record in re.split(r"\n(?=m: )", block)[1:]:
            lines = [line.split(": ", 1) for line in record.strip().splitlines() if ": " in line]
            values: dict[str, list[str]] = {}
            for key, value in lines:
                values.setdefault(key, []).append(value.strip())
            english, asked = values.get("e", [""])[0], values.get("f", [""])[0]
            talk.append(Message(language, values["m"][0], tuple(values["q"]), english, asked))
        if talk:
            talks.append(talk)
    return talks


def read_facts(path: Path) -> list[tuple[list[Message], list[Message]]]:
    """The blocks of a file of facts, each told in the two languages of its name."""
    first, second = path.stem.split("-")[1:3]
    blocks = []
    for block in re.split(r"\n\s*\n", path.read_text(encoding="utf8")):
        lines = [line.split(" | ") for line in block.splitlines() if line.strip() and not line.startswith("#")]
        talks: tuple[list[Message], list[Message]] = ([], [])
        for text, asked, other_asked, translated, translated_asked, english, english_asked in lines:
            talks[0].append(Message(first, text, (asked, other_asked), english, english_asked))
            talks[1].append(Message(second, translated, (translated_asked,), english, english_asked))
        if lines:
            blocks.append(talks)
    return blocks


def translated_questions() -> Iterator[tuple[str, str, str]]:
    """The questions written by hand with their translations: language, question, the same in English."""
    for path in sorted(DATA.glob("questions-*.txt")):
        for line in path.read_text(encoding="utf8").splitlines():
            asked, separator, english = line.partition(" | ")
            if separator:
                yield path.stem.removeprefix("questions-"), asked.strip(), english.strip()


def read_templates(path: Path) -> tuple[dict[str, list[str]], list[Template]]:
    """The slots and the templates of one language."""
    slots: dict[str, list[str]] = {}
    templates: list[Template] = []
    for line in path.read_text(encoding="utf8").splitlines():
        key, _, value = line.partition(": ")
        value = value.strip()
        if not value or line.startswith("#"):
            continue
        if key == "m":
            templates.append(Template(value))
        elif key == "q" and templates:
            templates[-1].questions.append(value)
        elif key == "e" and templates:
            templates[-1].english = value
        elif not templates:
            slots[key.strip()] = [filler.strip() for filler in value.split("|") if filler.strip()]
    return slots, [template for template in templates if template.questions]


def fill_template(
    language: str, template: Template, slots: dict[str, list[str]], choice: random.Random, copies: int
) -> list[Message]:
    """The template with several fillings, so that each is a wrong answer to the questions about the others."""
    names = sorted(set(re.findall(r"\{(\w+)\}", template.text + " ".join(template.questions))))
    messages, seen = [], set()
    for _ in range(copies):
        filling = {name: choice.choice(slots[name]) for name in names if name in slots}
        if len(filling) < len(names):
            return []

        def fill(text: str, filling: dict[str, str] = filling) -> str:
            return re.sub(r"\{(\w+)\}", lambda slot: filling[slot[1]], text)

        questions = tuple(map(fill, template.questions))
        if not seen.isdisjoint(questions):
            continue
        seen.update(questions)
        messages.append(Message(language, fill(template.text), questions))
    return messages


# --- English frames: one verb, many objects, told by named people or to an assistant

NAMES = (
    "Ayla Bram Chidi Dunja Elif Fabrice Greta Hamid Ines Jorma Kavya Linus Mirela Nkechi Odile Pavel Quentin Rosalind "
    "Sanjay Tove Ulrike Viktor Wendeline Xiomara Yusuf Zainab Beatrix Cormac Dilip Esme Farida Giacomo Hester Ingrid "
    "Jasper Keiko Lorenzo Mehmet Nadine Oskar Priya Rafael Sunniva Tomasz Ursula Vikram Winifred Zoltan Alma Bodil"
).split()
PAST = (
    "yesterday;last weekend;two days ago;last Tuesday;on Friday;this morning;a week ago;last month;in March"
    ";on the 14th;"
    "last night;over the holidays;in 2021;three years ago;back in autumn;the other day;on my birthday;just now;in June;"
    "the day before yesterday;on 3 October;last summer"
).split(";")
FUTURE = (
    "next week;tomorrow;on Saturday;next month;in spring;after the holidays;in two weeks;on the 21st;this weekend;"
    "before the end of the year;in September;as soon as the money is there;on 9 May;next summer;on Monday at ten"
).split(";")
OPENERS = (
    "Hey {O}! ;Hi! ;Oh, ;Guess what, ;Sorry for the late reply. ;Ha, thanks! ;Long day today. ;You won't believe it: ;"
    "By the way, ;Well, ;So, ;It's been a while! ;Good question. ;Not much, but ;Yes! ;Honestly, ;Funny you ask. ;"
    "How are you, {O}? ;That sounds lovely! ;Wow, {O}, congratulations! "
).split(";")
CLOSERS = (
    " How about you?; It was great.; I was so nervous.; My feet still hurt.; Best decision in years.;"
    " What do you think?;"
    " It took forever.; The kids loved it.; I'm still smiling.; Never again, honestly.; It helps me unwind.;"
    " Send pics!;"
    " You should try it too.; I feel a bit guilty about it.; Do you remember when we talked about that?;"
    " It cost a fortune.;"
    " Let's catch up soon!; Fingers crossed.; My back is killing me though.; It reminded me of our school days."
).split(";")
REQUESTS = (
    "Can you help me write a short thank-you note? ;I need a checklist for next week. ;What should I cook tonight? ;"
    "Could you make this mail sound friendlier? ;Please suggest a schedule for my mornings. ;"
    "I can't sleep well lately. ;"
    "Give me three ideas for a gift. ;How do I explain this to my boss? ;Summarise what I have to do. ;"
    "I'd like to spend less money this month. ;Can you check my plan for the weekend? ;I want to feel less stressed. "
).split(";")
REASONS = (
    "the weather was awful;I had a fever;it was too expensive;my shift was changed;they were closed;"
    "the car wouldn't start;"
    "I got cold feet;the baby was ill;nobody had time;the train was cancelled"
).split(";")


@dataclass(frozen=True)
class Frame:
    """One verb in its forms, a more general question, and what it can be about."""

    past: str
    base: str
    ing: str
    general: str
    objects: tuple[str, ...]


def read_frames(path: Path) -> list[Frame]:
    """The verbs of the frames file."""
    frames = []
    for line in path.read_text(encoding="utf8").splitlines():
        if line and not line.startswith("#"):
            past, base, ing, general, objects = (part.strip() for part in line.split("|"))
            frames.append(Frame(past, base, ing, general, tuple(thing.strip() for thing in objects.split(";"))))
    return frames


def third_person(text: str, name: str) -> str:
    """`my sister` as others say it: `Ayla's sister`, or `her` where the name would be heard twice."""
    return re.sub(r"\b(my|our)\b", f"{name}'s", text)


def frame_message(frame: Frame, thing: str, name: str, other: str, choice: random.Random) -> Message:
    """One thing that happened, or will, told to a friend or to an assistant."""
    to_friend = choice.random() < 0.6
    kind = choice.choice(("past", "past", "past", "plan", "failed"))
    when = choice.choice(PAST if kind != "plan" else FUTURE)
    their = third_person(thing, name)
    if kind == "past":
        said = choice.choice(
            (
                f"I {frame.past} {thing} {when}.",
                f"{when} I {frame.past} {thing}.",
                f"we {frame.past} {thing} {when}!",
                f"I finally {frame.past} {thing} {when}.",
                f"I {frame.past} {thing}. That was {when}.",
            )
        )
        asked = [
            f"When did {name} {frame.base} {their}?",
            f"What did {name} {frame.base} {when}?",
            f"Did {name} {frame.base} {their}?",
            f"Who {frame.past} {their}?",
        ]
        own = [
            f"When did I {frame.base} {thing}?",
            f"What did I {frame.base} {when}?",
            f"Which day was it that I {frame.past} {thing}?",
        ]
    elif kind == "plan":
        said = choice.choice(
            (
                f"I'm going to {frame.base} {thing} {when}.",
                f"I'm thinking about {frame.ing} {thing} {when}.",
                f"{when} I want to {frame.base} {thing}.",
                f"the plan is to {frame.base} {thing} {when}.",
            )
        )
        asked = [
            f"When does {name} plan to {frame.base} {their}?",
            f"What is {name} going to {frame.base}?",
            f"What are {name}'s plans for {when}?",
            f"Is {name} thinking about {frame.ing} {their}?",
        ]
        own = [
            f"When am I going to {frame.base} {thing}?",
            f"What did I want to {frame.base} {when}?",
            f"my plans {when}",
        ]
    else:
        reason = choice.choice(REASONS)
        said = f"I wanted to {frame.base} {thing} {when}, but {reason}."
        asked = [
            f"Why didn't {name} {frame.base} {their}?",
            f"What did {name} want to {frame.base} {when}?",
            f"What kept {name} from {frame.ing} {their}?",
        ]
        own = [f"Why didn't I {frame.base} {thing}?", f"What came between when I wanted to {frame.base} {thing}?"]
    said = said[0].upper() + said[1:] if not to_friend else said
    if to_friend:
        opener = choice.choice(OPENERS).format(O=other) if choice.random() < 0.7 else ""
        closer = choice.choice(CLOSERS) if choice.random() < 0.6 else ""
        said = said if opener and not opener.rstrip().endswith(("!", ".", "?")) else said[0].upper() + said[1:]
        text = f"{name}: {opener}{said}{closer}"
        questions = [*choice.sample(asked, 2), frame.general.replace("{N}", name)]
    else:
        before = choice.choice(REQUESTS) if choice.random() < 0.6 else ""
        after = " " + choice.choice(REQUESTS).rstrip() if not before and choice.random() < 0.5 else ""
        text = ("user: " if choice.random() < 0.5 else "") + before + said + after
        general = frame.general.replace("{N}'s", "my").replace("{N}", "the user" if choice.random() < 0.4 else "I")
        general = re.sub(r"\b(does|is) I\b", lambda verb: {"does": "do", "is": "am"}[verb[1]] + " I", general)
        questions = [*choice.sample(own, 2), general]
    return Message("en", text, tuple(question[0].upper() + question[1:] for question in questions))


def frame_talk(frames: list[Frame], choice: random.Random) -> list[Message]:
    """A talk of nine messages: three verbs with three objects each, or nine verbs and more general questions."""
    name, other = choice.sample(NAMES, 2)
    broad = choice.random() < 0.5
    talk = []
    for frame in choice.sample(frames, 9 if broad else 3):
        for thing in choice.sample(frame.objects, 1 if broad else 3):
            speaker, hearer = (name, other) if choice.random() < 0.6 else (other, name)
            message = frame_message(frame, thing, speaker, hearer, choice)
            talk.append(message if broad else replace(message, questions=message.questions[:2]))
    return talk


def frame_talks(seed: int, count: int) -> Iterator[list[Message]]:
    """Talks made from the frames."""
    choice = random.Random(seed)
    frames = read_frames(DATA / "frames-en.txt")
    for _ in range(count):
        yield frame_talk(frames, choice)


def template_talks(seed: int, rounds: int, copies: int = 6) -> Iterator[tuple[int, list[Message]]]:
    """Fillings of all templates of all languages, with the number of the template in its file."""
    choice = random.Random(seed)
    for path in sorted(DATA.glob("templates-*.txt")):
        slots, templates = read_templates(path)
        language = path.stem.removeprefix("templates-")
        for number, template in enumerate(templates):
            for _ in range(rounds):
                talk = fill_template(language, template, slots, choice, copies)
                if len(talk) > 1:
                    yield number, talk


def written_talks() -> Iterator[tuple[int, list[Message]]]:
    """The talks written by hand, with their number in the file."""
    for path in sorted(DATA.glob("talks-*.txt")):
        yield from enumerate(read_talks(path))


def fact_talks() -> Iterator[tuple[int, list[Message]]]:
    """The facts written by hand, a talk for each block and language, with the number of the block in its file."""
    for path in sorted(DATA.glob("facts-*.txt")):
        for number, talks in enumerate(read_facts(path)):
            yield from ((number, talk) for talk in talks)


# --- scenes: everything said between the same two people, so that their names tell nothing


def speaker(message: Message, talk: list[Message]) -> str:
    """The name under which the questions ask about a message, if they do."""
    names = [re.findall(r"\b[A-Z][a-z]{2,}\b", " ".join(re.sub(r"^\W*\w+", "", q) for q in m.questions)) for m in talk]
    common = {name for found in names for name in found if sum(name in other for other in names) > 1}
    here = [name for name in names[talk.index(message)] if name in common and name not in message.text]
    return max(set(here), key=here.count) if here else ""


def rename(text: str, names: dict[str, str]) -> str:
    """The text with other people in it."""
    return re.sub(r"\b\w+\b", lambda word: names.get(word[0], word[0]), text)


def scene(
    frames: list[Frame], talks: list[list[Message]], chat: list[str], choice: random.Random, size: int = 90
) -> list[Message]:
    """A long chat between two people: facts from frames and from written talks, and talk without any."""
    pair = choice.sample(NAMES, 2)
    said: list[Message] = []
    for frame in frames:
        thing = choice.choice(frame.objects)
        name, other = pair if choice.random() < 0.5 else pair[::-1]
        message = frame_message(frame, thing, name, other, choice)
        said.append(message)
    said = choice.sample(said, min(len(said), size // 2))
    for talk in choice.sample(talks, min(len(talks), size // 10)):
        speakers = [speaker(message, talk) for message in talk]
        found = sorted(set(filter(None, speakers)))
        names = dict(zip(found, choice.sample(pair, 2), strict=False))
        for message, own in zip(talk, speakers, strict=True):
            name = names.get(own) or choice.choice(pair)
            asked = [re.sub(r"\b[Tt]he user\b", name, rename(question, names)) for question in message.questions]
            said.append(Message("en", f"{name}: {rename(message.text, names)}", tuple(asked)))
    for line in choice.sample(chat, min(len(chat), size // 2)):
        name, other = pair if choice.random() < 0.5 else pair[::-1]
        said.append(Message("en", f"{name}: {line.replace('{O}', other)}", ()))
    choice.shuffle(said)
    return said


def scenes(seed: int, count: int) -> Iterator[list[Message]]:
    """Long chats in English; talks that are kept back stay out of them."""
    choice = random.Random(seed)
    frames = read_frames(DATA / "frames-en.txt")
    talks = [
        talk
        for path in sorted(DATA.glob("talks-en*.txt"))
        for number, talk in enumerate(read_talks(path))
        if not held_back(number)
    ]
    lines = (DATA / "chat-en.txt").read_text(encoding="utf8").splitlines()
    chat = [line for line in lines if line and not line.startswith("#")]
    for _ in range(count):
        yield scene(frames, talks, chat, choice)


def held_back(number: int) -> bool:
    """Tell whether a talk or template is kept for choosing between models instead of training."""
    return number % 10 == 7
