"""Trains an exported model on for an hour on one core of a CPU, and holds it to what it is.

    python -m training.resume MODEL_FOLDER start.npz
    python -m training.finetune_data MODEL_FOLDER start.npz DATA.npz GIVEN PAIRS.jsonl[.xz]...
    python -m training.finetune start.npz DATA.npz OUT_FOLDER [--seconds 2160]
    python -m training.finetune watch DATA.npz WEIGHTS.npz...
    python -m training.finetune mean OUT.npz SHARE=WEIGHTS.npz...

The model is its own teacher: `finetune_data.py` writes where it puts texts at the start. Passages of every language
stay there, so questions learn to find them as they are, and a step needs no more of a passage than its vector. Messages
of talks and their questions learn from each other; translations move to where their English texts are.
"""

import argparse
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from training.finetune_data import ANCHORED, TALKS
from training.model import Packed, embed, read_weights, write_weights

LONGEST_TALK = 256
NEAR = 0.8  # the cosine of two texts that may say the same
WATCHED_TALKS = ("fact", "written", "chat")
WATCHED_KINDS = ("passage", *sorted(ANCHORED))

parser = argparse.ArgumentParser()
parser.add_argument("start", type=Path)
parser.add_argument("data", type=Path)
parser.add_argument("out", type=Path)
parser.add_argument("--name", default="finetuned")
parser.add_argument("--seconds", type=float, default=2_160)
parser.add_argument("--save-every", type=float, default=300, help="seconds between two files of weights")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--rate", type=float, default=5e-5)
parser.add_argument("--rate-words", type=float, default=1.5e-4)
parser.add_argument("--temperature", type=float, default=0.03)
parser.add_argument("--budget", type=int, default=3_584, help="tokens of a step")
parser.add_argument("--shares", default="talk=.52,found=.07,said=.14,stay=.06,passage=.21")
parser.add_argument("--weights", default="talk=1,found=.4,english=3,follow=6,said=6,stay=6,passage=15")
parser.add_argument("--wrong", type=int, default=1_024, help="other messages, as they were, beside those of a step")


def table(text: str) -> dict[str, float]:
    """`name=number,name=number` as a table."""
    return {name: float(value) for name, value in (part.split("=") for part in text.split(","))}


class Data:
    """The arrays that `prepare` wrote."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as stored:
            self.arrays = {name: stored[name] for name in stored.files}
        self.flat, self.offsets = self.arrays["flat"], self.arrays["offsets"]
        self.lengths = np.diff(self.offsets)
        self.vectors = torch.from_numpy(self.arrays["vectors"])
        self.is_target = (self.arrays["language"] == "en") & self.arrays["vectors"].any(1)

    def text(self, row: int) -> np.ndarray:
        return self.flat[self.offsets[row] : self.offsets[row + 1]]


class Rounds:
    """Goes through things in another order each time."""

    def __init__(self, things, choice: np.random.Generator) -> None:
        self.things, self.choice, self.order, self.drawn = things, choice, [], 0

    def next(self):
        if not self.order:
            self.order = self.choice.permutation(len(self.things)).tolist()
        self.drawn += 1
        return self.things[self.order.pop()]


class Step:
    """The texts of one step, and what each of them has to learn."""

    def __init__(self) -> None:
        self.texts: list[np.ndarray] = []
        self.targets: list[tuple[str, int, int]] = []  # which weight, the place of a text, whose vector it learns
        self.asked: list[tuple[int, int, int]] = []  # places of a question and its message, the message's row
        self.others: list[int] = []  # places of messages that nobody asks for
        self.found: list[tuple[int, int]] = []  # the place of a question, the row of its passage

    def add(self, ids: np.ndarray) -> int:
        self.texts.append(ids)
        return len(self.texts) - 1


class Steps:
    """Draws steps."""

    def __init__(self, data: Data, options: argparse.Namespace) -> None:
        self.data, self.shares, self.budget = data, table(options.shares), options.budget
        self.choice = np.random.default_rng(options.seed)
        a = data.arrays
        talks: dict[str, list[np.ndarray]] = {}
        for messages in np.split(np.arange(len(a["talk_of"])), np.flatnonzero(np.diff(a["talk_of"])) + 1):
            if not a["talk_held"][messages[0]]:
                talks.setdefault(str(a["talk_source"][messages[0]]), []).append(messages)
        self.talks = {source: Rounds(listed, self.choice) for source, listed in talks.items()}
        self.read = dict.fromkeys(self.talks, 0)
        self.passages, self.stays, self.said, self.found = (
            Rounds(a[name], self.choice) for name in ("staying", "stays", "said", "found")
        )
        messages = np.unique(a["talk_said"][~a["talk_held"], 0])
        self.messages = messages[a["vectors"][messages].any(1)]
        wanted = np.unique(a["found"][:, 1])
        self.banks = {
            str(name): torch.from_numpy(wanted[a["language"][wanted] == name]).long()
            for name in np.unique(a["language"][wanted])
        }

    def rounds(self) -> dict[str, float]:
        """How many times each kind of thing was read."""
        all_rounds = {
            **self.talks,
            "passage": self.passages,
            "stay": self.stays,
            "said": self.said,
            "found": self.found,
        }
        return {name: round(one.drawn / len(one.things), 2) for name, one in all_rounds.items()}

    def next(self) -> Step:
        step = Step()
        self.talk(step)
        for share, draw in (("found", self.ask), ("said", self.say), ("stay", self.stay), ("passage", self.hold)):
            before, tokens = len(step.texts), 0
            while tokens < self.shares[share] * self.budget:
                draw(step)
                tokens = sum(len(text) for text in step.texts[before:])
        return step

    def ask(self, step: Step) -> None:
        asked, document = self.found.next()
        step.found.append((step.add(self.data.text(asked)), int(document)))

    def say(self, step: Step) -> None:
        foreign, english = self.said.next()
        step.targets.append(("said", step.add(self.data.text(foreign)), int(english)))

    def stay(self, step: Step) -> None:
        row = self.stays.next()
        step.targets.append(("stay", step.add(self.data.text(row)), int(row)))

    def hold(self, step: Step) -> None:
        row = self.passages.next()
        step.targets.append(("passage", step.add(self.data.text(row)), int(row)))

    def talk(self, step: Step) -> None:
        """Whole talks: every message is a wrong answer to the questions about the others."""
        a, data, choice = self.data.arrays, self.data, self.choice
        tokens = 0
        while tokens < self.shares["talk"] * self.budget:
            source = min(self.talks, key=lambda name: self.read[name] / TALKS[name])
            before = tokens
            for message in self.talks[source].next():
                row = int(a["talk_said"][message][choice.integers(2)])
                first, last = a["talk_asked_at"][message], a["talk_asked_at"][message + 1]
                ids = data.text(row)
                if choice.random() < 0.12 and step.texts:  # it stands inside a longer message
                    other = step.texts[choice.integers(len(step.texts))]
                    parts = [ids[1:-1], other[1:-1]]
                    if choice.random() < 0.5:
                        parts.reverse()
                    place = step.add(np.concatenate([[0], *parts, [2]])[:LONGEST_TALK].astype(np.int32))
                else:
                    place = step.add(ids)
                    self.learn(step, place, row, int(a["talk_said"][message][1]))
                tokens += len(step.texts[place])
                if first == last:
                    step.others.append(place)
                    continue
                number = int(choice.integers(first, last))
                question = int(a["talk_asked"][number])
                asked = step.add(data.text(question))
                tokens += len(step.texts[asked])
                same = a["talk_follows"][message] and number == first
                self.learn(step, asked, question, int(a["talk_asked"][last - 1]) if same else question)
                step.asked.append((asked, place, row))
            self.read[source] += tokens - before

    def learn(self, step: Step, place: int, row: int, english: int) -> None:
        """An English text stays where it is, another moves to where its English one is."""
        if self.data.is_target[row]:
            step.targets.append(("english", place, row))
        elif self.data.is_target[english]:
            step.targets.append(("follow", place, english))


def run(packed: Packed, texts: list[np.ndarray]) -> torch.Tensor:
    """The vectors of texts, in their order."""
    lengths = np.array([len(text) for text in texts])
    order = np.argsort(lengths, kind="stable")
    vectors = packed(np.concatenate([texts[place] for place in order]), lengths[order])
    return vectors[torch.from_numpy(np.argsort(order))]


def talk_loss(step: Step, vectors: torch.Tensor, data: Data, steps: Steps, options: argparse.Namespace) -> torch.Tensor:
    """Each question against all messages of the step, and others where they were at the start."""
    t = options.temperature
    asked, right, rows = (torch.tensor(column) for column in zip(*step.asked, strict=True))
    before = data.vectors[torch.from_numpy(steps.choice.choice(steps.messages, options.wrong)).long()].float()
    same = rows[:, None] == rows[None]
    same.fill_diagonal_(False)
    scores = (vectors[asked] @ vectors[right].T / t).masked_fill(same, -1e4)
    near = data.vectors[rows].float() @ before.T > NEAR  # the message itself, or a translation
    wrong = (vectors[asked] @ before.T / t).masked_fill(near, -1e4)
    wide = torch.cat([scores, vectors[asked] @ vectors[step.others].T / t, wrong], 1)
    target = torch.arange(len(rows))
    return 0.5 * (functional.cross_entropy(wide, target) + functional.cross_entropy(scores.T, target))


def found_loss(step: Step, vectors: torch.Tensor, data: Data, steps: Steps, temperature: float) -> torch.Tensor:
    """Each question against all passages of its passage's language, where they were at the start."""
    places, documents = (torch.tensor(column) for column in zip(*step.found, strict=True))
    languages = data.arrays["language"][documents.numpy()]
    lost = []
    for name in np.unique(languages):
        here = torch.from_numpy(languages == name)
        bank = steps.banks[str(name)]
        scores = vectors[places[here]] @ data.vectors[bank].float().T / temperature
        lost.append(functional.cross_entropy(scores, torch.searchsorted(bank, documents[here]), reduction="sum"))
    return torch.stack(lost).sum() / len(places)


def losses(
    step: Step, vectors: torch.Tensor, data: Data, steps: Steps, options: argparse.Namespace
) -> dict[str, torch.Tensor]:
    """What each part of the step has lost, before it is weighted."""
    made = {
        "talk": talk_loss(step, vectors, data, steps, options),
        "found": found_loss(step, vectors, data, steps, options.temperature),
    }
    for name in ("english", "follow", "said", "stay", "passage"):
        chosen = [(place, row) for kind, place, row in step.targets if kind == name]
        if chosen:
            places, rows = (torch.tensor(column) for column in zip(*chosen, strict=True))
            made[name] = (1 - (vectors[places] * data.vectors[rows].float()).sum(1)).mean()
    return made


def train(options: argparse.Namespace) -> None:
    """Train for the given time, and write the weights now and then."""
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    data = Data(options.data)
    steps, weights = Steps(data, options), table(options.weights)
    encoder = read_weights(options.start)
    packed = Packed(encoder, compiled=False)
    body = [values for name, values in encoder.named_parameters() if name not in ("word", "new")]
    optimizers = (
        torch.optim.AdamW(body, lr=options.rate, betas=(0.9, 0.98), eps=1e-8, weight_decay=0.0),
        torch.optim.SparseAdam([encoder.word], lr=options.rate_words, betas=(0.9, 0.98)),
    )
    began, saved, number, tokens = time.time(), 0, 0, 0
    seen: dict[str, list[float]] = {}
    while (passed := time.time() - began) < options.seconds:
        share = passed / options.seconds
        factor = min(1.0, (number + 1) / 60) * (0.475 * (1 + math.cos(math.pi * share)) + 0.05)
        for optimizer, rate in zip(optimizers, (options.rate, options.rate_words), strict=True):
            optimizer.param_groups[0]["lr"] = rate * factor
        step = steps.next()
        made = losses(step, run(packed, step.texts), data, steps, options)
        sum(weights[name] * lost for name, lost in made.items()).backward()
        torch.nn.utils.clip_grad_norm_(body, 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        number += 1
        tokens += sum(map(len, step.texts))
        for name, lost in made.items():
            seen.setdefault(name, []).append(float(lost.detach()))
        if number % 50 == 0:
            means = {name: round(sum(values) / len(values), 4) for name, values in seen.items()}
            print(number, round(time.time() - began), "s", round(tokens / (time.time() - began)), "tokens/s", means)
            seen = {}
        if passed // options.save_every > saved:
            saved += 1
            write_weights(encoder, options.out / f"{options.name}-{saved}.npz")
            print("saved", saved, steps.rounds(), flush=True)
    write_weights(encoder, options.out / f"{options.name}.npz")
    print(number, "steps", tokens, "tokens", steps.rounds(), flush=True)


def mean(out: Path, parts: list[str]) -> None:
    """Write the weighted mean of several files of weights."""
    encoders = [(float(share), read_weights(Path(path))) for share, path in (part.split("=") for part in parts)]
    total = sum(share for share, _ in encoders)
    _, made = encoders[0]
    with torch.no_grad():
        for name, values in made.named_parameters():
            values.copy_(sum(share / total * dict(other.named_parameters())[name] for share, other in encoders))
    write_weights(made, out)


# --- what is kept back


def reciprocal_rank(left: torch.Tensor, right: torch.Tensor, which: np.ndarray) -> float:
    """The mean of one over the rank of the right text."""
    scores = left @ right.T
    own = scores[torch.arange(len(left)), torch.from_numpy(which)]
    return float((1 / (scores >= own[:, None] - 1e-6).sum(1)).mean())


def watched(data: Data) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Questions, the texts that answer them, and all texts among which these are looked for."""
    a = data.arrays
    jobs = {}
    kinds = np.array([name.split()[0] for name in a["kept_name"]])
    languages = a["language"][a["kept"][:, 1]]
    for language in np.unique(languages):
        documents = np.unique(a["kept"][languages == language, 1])
        for kind in np.unique(kinds):
            rows = a["kept"][(languages == language) & (kinds == kind)]
            if len(rows) >= 8:
                jobs[f"{kind} {language}"] = rows[:, 0], rows[:, 1], documents
    held = np.flatnonzero(a["talk_held"] & (np.diff(a["talk_asked_at"]) > 0))
    languages = a["language"][a["talk_said"][held, 0]]
    for source in WATCHED_TALKS:
        for language in np.unique(languages):
            here = held[(a["talk_source"][held] == source) & (languages == language)]
            if len(here) >= 20:
                said = a["talk_said"][here, 0]
                jobs[f"{source} {language}"] = a["talk_asked"][a["talk_asked_at"][here]], said, np.unique(said)
                if source != "chat" and language != "en":
                    english = a["talk_asked"][a["talk_asked_at"][here + 1] - 1]
                    jobs[f"{source}-from-English {language}"] = english, said, np.unique(said)
    return jobs


def watch(data_path: Path, weights: list[Path]) -> None:
    """Print what each of several weights finds of what is kept back, and how near the passages are to the start."""
    data = Data(data_path)
    jobs = watched(data)
    rows = np.unique(np.concatenate([part for job in jobs.values() for part in job]))
    place = np.zeros(len(data.lengths), np.int64)
    place[rows] = np.arange(len(rows))
    documents = np.intersect1d(rows, data.arrays["kept"][:, 1])
    for path in weights:
        vectors = embed(Packed(read_weights(path), compiled=False), data.flat, data.offsets, rows, 16_384)
        means: dict[str, list[float]] = {}
        each = {}
        for name, (asked, right, among) in jobs.items():
            score = reciprocal_rank(vectors[place[asked]], vectors[place[among]], np.searchsorted(among, right))
            kind = name.split()[0]
            is_own = kind in WATCHED_KINDS or kind.split("-")[0] in TALKS
            means.setdefault(kind if is_own else "headings", []).append(score)
            each[name] = round(score, 3)
        near = (vectors[place[documents]] * data.vectors[documents].float()).sum(1).numpy()
        languages = data.arrays["language"][documents]
        cosines = {str(name): round(float(near[languages == name].mean()), 4) for name in np.unique(languages)}
        print(path.name, {kind: round(float(np.mean(scores)), 4) for kind, scores in means.items()})
        print("  each", each)
        print("  passages' cosines to the start", cosines, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["watch"]:
        watch(Path(sys.argv[2]), [Path(name) for name in sys.argv[3:]])
    elif sys.argv[1:2] == ["mean"]:
        mean(Path(sys.argv[2]), sys.argv[3:])
    else:
        train(parser.parse_args())
