"""Trains the model: translations and long parallel passages, headings and questions, talks; English stays anchored.

    python -m training.train MODEL_FOLDER DATA.npz OUT_FOLDER --seconds 540 --name first [--start WEIGHTS.npz]

Every batch has one contrastive loss (a question or translation against all other texts of the batch) and one anchor:
the vectors of English texts, and of their translations, stay near those of Granite.
"""

import argparse
import math
import multiprocessing
import threading
import time
from pathlib import Path
from queue import Queue

import numpy as np
import torch
from torch.nn import functional

from training.model import DEVICE, Encoder, Packed, embed, write_weights
from training.pack import read_pack

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=Path)
parser.add_argument("data", type=Path)
parser.add_argument("out", type=Path)
parser.add_argument("--seconds", type=float, default=540)
parser.add_argument("--name", default="first")
parser.add_argument("--start", type=Path)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--rate", type=float, default=1.5e-4)
parser.add_argument("--rate-new", type=float, default=8e-4)
parser.add_argument("--rate-old", type=float, default=6e-5)
parser.add_argument("--temperature", type=float, default=0.03)
parser.add_argument("--budget", type=int, default=131_072)
parser.add_argument("--shares", default="par=.23,long=.24,qd=.11,dic=.03,talk=.23,dlg=.01,second=.15")
parser.add_argument(
    "--talks", default="written=.16,fact=.28,template=.08,frame=.04,dialogue=.03,scene=.20,chat=.10,mixed=.11"
)
parser.add_argument("--anchor", type=float, default=10)
parser.add_argument("--anchor-talk", type=float, default=3)
parser.add_argument("--follow", type=float, default=3, help="weight of everyday translations beside the English anchor")
parser.add_argument("--second", type=float, default=1.0, help="weight of the second teacher's similarities")
parser.add_argument(
    "--second-place", type=float, default=4, help="weight of the places that its vectors have in Granite's space"
)
parser.add_argument("--long", default="", help="weights of languages in long passages other than the usual")
parser.add_argument("--workers", type=int, default=12)

# How often each source and language is drawn, against its size.
SOURCES = {
    "ntrex": 1.6, "flores": 2.0, "tico": 1.2, "talks": 15.0, "tatoeba": 3.0, "pydocs": 0.7, "eth": 0.9, "mdn": 0.6,
    "k8s": 0.9,
    "d2l": 1.0, "osg": 1.2, "tldr": 0.4, "lohelp": 0.5, "ddtp": 0.6, "cedict": 0.5, "edict": 0.5, "cldr": 1.0,
    "korsts": 1.0, "jsts": 1.0, "kornli": 0.7, "kochat": 0.5, "jcqa": 0.4, "drcd": 1.6, "jsquad": 1.6, "iapp": 1.2,
    "arcd": 1.6,
}  # fmt: skip
LONG_LANGUAGES = {
    "zh": 3, "ja": 3, "ko": 3.5, "de": 2, "fr": 2, "es": 2, "ru": 2, "it": 1.2, "pt": 1.2, "nl": 1, "pl": 1.2,
    "tr": 1.4, "uk": 1, "ar": 1.6, "vi": 1.4, "hi": 1.5, "cs": 0.6, "sv": 0.6, "da": 0.3, "no": 0.3, "fi": 0.4,
    "hu": 0.4, "el": 1, "he": 0.5, "th": 1.4, "id": 0.8, "ro": 0.9, "bg": 0.4, "fa": 0.4,
}  # fmt: skip
LONG_SOURCES = {
    "ntrex": 3, "flores": 3, "tico": 2, "talks": 1.5, "tatoeba": 1.5, "eth": 1, "k8s": 1, "mdn": 0.8, "ddtp": 0.8,
    "pydocs": 0.7,
    "lohelp": 0.5, "osg": 1, "d2l": 1,
}  # fmt: skip
EVERYDAY = {"talks", "tatoeba"}  # translations that follow where training takes the English text
CONTRAST = {"par": 0.3, "say": 1.0, "dic": 0.1, "qd": 0.6, "dlg": 1.0, "talk": 1.0}
LONGEST_PASSAGE = 512
SECOND_TEMPERATURE = 0.07
SMALL = {"drcd", "arcd", "jsquad", "iapp", "kochat", "jcqa", "friendsqa", "qmsum"}  # read at most three times


def shares(text: str) -> dict[str, float]:
    """`name=share,name=share` as a table."""
    return {name: float(value) for name, value in (part.split("=") for part in text.split(",") if part)}


class Data:
    """The arrays that `prepare.py` wrote."""

    def __init__(self, path: Path) -> None:
        arrays = np.load(path)
        self.arrays = {name: arrays[name] for name in arrays.files}
        self.flat, self.offsets = self.arrays["flat"], self.arrays["offsets"]
        self.lengths = np.diff(self.offsets)
        self.teacher_row = np.full(len(self.lengths), -1, np.int64)
        self.teacher_row[self.arrays["english"]] = np.arange(len(self.arrays["english"]))

    def text(self, row: int) -> np.ndarray:
        return self.flat[self.offsets[row] : self.offsets[row + 1]]

    def inner(self, row: int) -> np.ndarray:
        return self.flat[self.offsets[row] + 1 : self.offsets[row + 1] - 1]

    def old_inner(self, row: int) -> np.ndarray:
        at, edges = self.teacher_row[row], self.arrays["old_offsets"]
        return self.arrays["old_flat"][edges[at] + 1 : edges[at + 1] - 1]


class Batches:
    """Draws batches; every worker process has its own."""

    def __init__(self, data: Data, options: argparse.Namespace, worker: int) -> None:
        self.data, self.options = data, options
        self.choice = np.random.default_rng(options.seed * 1_000 + worker)
        a = data.arrays
        self.kinds = shares(options.shares)
        keys = np.char.add(np.char.add(a["train_kind"], "|"), a["train_source"])
        self.groups: dict[str, list[tuple[np.ndarray, float]]] = {}
        self.small: set[tuple[str, int]] = set()
        for key in np.unique(keys):
            kind, source = key.split("|")
            rows = np.flatnonzero(keys == key)
            to_english = a["train_lb"][rows] == "en"
            step = options.workers if source in SMALL else 1  # each worker reads its own part of a small source
            for part in (rows[to_english][worker % step :: step], rows[~to_english][worker % step :: step]):
                if len(part) >= 64:
                    if source in SMALL:
                        self.small.add((kind, len(self.groups.get(kind, []))))
                    size = max(len(part) / 2_048, data.lengths[a["train_b"][part]].sum() / options.budget)
                    self.groups.setdefault(kind, []).append((part, size * SOURCES.get(source, 1)))
        self.positions: dict[tuple[str, int], tuple[np.ndarray, int, int]] = {}
        parallel = (a["train_kind"] == "par") & (a["train_lb"] == "en") & (a["train_la"] != "en")
        language_source = np.char.add(np.char.add(a["train_la"], "|"), a["train_source"])
        self.long: list[tuple[np.ndarray, float]] = []
        for key in np.unique(language_source[parallel]):
            language, source = key.split("|")
            rows = np.flatnonzero(parallel & (language_source == key))
            rows = rows[data.lengths[a["train_b"][rows]] > 6]
            if len(rows) > 100 and language in LONG_LANGUAGES and source in LONG_SOURCES:
                here = LONG_SOURCES[source] * min(1, len(rows) / 1_500)
                self.long.append((rows, (LONG_LANGUAGES | shares(options.long))[language] * here))
        self.talks: dict[str, list[np.ndarray]] = {}
        order = np.argsort(a["talk_of"], kind="stable")
        for messages in np.split(order, np.flatnonzero(np.diff(a["talk_of"][order])) + 1):
            if not a["held_of"][messages[0]]:
                self.talks.setdefault(str(a["source_of"][messages[0]]), []).append(messages)
        self.talk_shares = shares(options.talks)
        languages = a["language"][a["second"]]
        self.second = [np.flatnonzero(languages == language) for language in np.unique(languages)]

    def pick(self, weighted: list[tuple[np.ndarray, float]]) -> int:
        weights = np.array([weight for _, weight in weighted])
        return int(self.choice.choice(len(weighted), p=weights / weights.sum()))

    def next(self) -> tuple:
        full = {kind for kind, groups in self.groups.items() if any(weight for _, weight in groups)}
        kinds = [kind for kind in self.kinds if kind in ("long", "talk", "second") or kind in full]
        weights = np.array([self.kinds[kind] for kind in kinds])
        kind = kinds[self.choice.choice(len(kinds), p=weights / weights.sum())]
        if kind == "long":
            return self.long_batch()
        if kind == "second":
            return self.second_batch()
        return self.talk_batch() if kind == "talk" else self.pair_batch(kind)

    def pair_batch(self, kind: str) -> tuple:
        """Pairs of one source, up to the budget of tokens."""
        a, lengths = self.data.arrays, self.data.lengths
        key = (kind, self.pick(self.groups[kind]))
        rows, at, times = self.positions.get(key, (np.empty(0, np.int64), 0, 0))
        if at >= len(rows):
            part, _ = self.groups[kind][key[1]]
            rows, at, times = self.choice.permutation(part), 0, times + 1
            if key in self.small and times > 3:
                self.groups[kind][key[1]] = (part, 0.0)
                return self.next()
        most = 2_048 if kind in ("par", "dic") else 1_024
        chosen = rows[at : at + most]
        cost = np.cumsum(lengths[a["train_a"][chosen]] + lengths[a["train_b"][chosen]] * (3 if kind == "dlg" else 1))
        chosen = chosen[: max(64, int(np.searchsorted(cost, self.options.budget)))]
        self.positions[key] = (rows, at + len(chosen), times)
        edges = a["train_neg_at"]
        wrong = np.concatenate([a["train_neg"][edges[row] : edges[row + 1]] for row in chosen])
        everyday = a["train_source"][chosen[0]] in EVERYDAY
        return self.pack("say" if everyday else kind, a["train_a"][chosen], a["train_b"][chosen], wrong)

    def talk_batch(self) -> tuple:
        """Whole talks: every message is a wrong answer to the questions about the others."""
        a = self.data.arrays
        sources = [source for source in self.talk_shares if source in self.talks or source == "mixed"]
        weights = np.array([self.talk_shares[source] for source in sources])
        source = sources[self.choice.choice(len(sources), p=weights / weights.sum())]
        pools = list(self.talks.values()) if source == "mixed" else [self.talks[source]]
        asked, said, wrong, tokens = [], [], [], 0
        while len(asked) < 640 and tokens < self.options.budget // 3:
            pool = pools[self.choice.integers(len(pools))]
            for message in pool[self.choice.integers(len(pool))]:
                text = int(a["said"][message][self.choice.integers(2)])
                first, last = a["asked_at"][message], a["asked_at"][message + 1]
                tokens += self.data.lengths[text]
                if first == last:
                    wrong.append(text)
                    continue
                asked.append(int(a["asked"][self.choice.integers(first, last)]))
                said.append(text)
        return self.pack("talk", np.array(asked), np.array(said), np.array(wrong, np.int64))

    def pack(self, kind: str, left: np.ndarray, right: np.ndarray, wrong: np.ndarray) -> tuple:
        rows = np.concatenate([left, right, wrong]).astype(np.int64)
        if kind == "talk":
            texts = [self.data.text(row) for row in rows]
            for place in range(len(left), len(left) + len(right)):
                if self.choice.random() < 0.15:  # the fact stands inside a longer message
                    other = self.data.inner(int(right[self.choice.integers(len(right))]))
                    parts = [texts[place][1:-1], other]
                    if self.choice.random() < 0.5:
                        parts.reverse()
                    texts[place] = np.concatenate([[0], *parts, [2]])[:LONGEST_PASSAGE].astype(np.int32)
        else:
            texts = [self.data.text(row) for row in rows]
        lengths = np.array([len(text) for text in texts])
        return kind, np.concatenate(texts), lengths, (len(left), left, right, self.data.teacher_row[rows])

    def second_batch(self, seeds: int = 320) -> tuple:
        """Texts of all languages and those that the second teacher finds near them."""
        a = self.data.arrays
        language = self.choice.choice(len(self.second), size=seeds)
        drawn = [self.second[number][self.choice.integers(len(self.second[number]))] for number in language]
        places = np.unique(np.concatenate([drawn, a["second_near"][drawn].ravel()]))
        rows = a["second"][places]
        texts = [self.data.text(row) for row in rows]
        return "second", np.concatenate(texts), self.data.lengths[rows], (places,)

    def long_batch(self, count: int = 250) -> tuple:
        """Passages made of several parallel texts of one language and source, and a text from each as its question."""
        a, data, choice = self.data.arrays, self.data, self.choice
        weights = np.array([weight for _, weight in self.long])
        foreign, english, teacher, asked, asked_english = [], [], [], [], []
        for number in choice.choice(len(self.long), size=count, p=weights / weights.sum()):
            pool = self.long[number][0]
            drawn = pool[choice.integers(0, len(pool), choice.integers(3, 22))]
            left, right = a["train_a"][drawn], a["train_b"][drawn]
            longest = np.cumsum(np.maximum(data.lengths[left], data.lengths[right]))
            used = max(1, int(np.searchsorted(longest, choice.integers(80, LONGEST_PASSAGE))))
            left, right = left[:used], right[:used]

            def joined(parts: list[np.ndarray]) -> np.ndarray:
                return np.concatenate([[0], *parts, [2]])[:LONGEST_PASSAGE].astype(np.int32)

            foreign.append(joined([data.inner(row) for row in left]))
            english.append(joined([data.inner(row) for row in right]))
            teacher.append(joined([data.old_inner(row) for row in right]))
            which = choice.integers(0, max(1, used - 1))
            asked.append(data.text(left[which]))
            asked_english.append(data.text(right[which]))
        texts = foreign + english + asked + asked_english
        lengths = np.array([len(text) for text in texts])
        taught = (np.concatenate(teacher), np.array([len(text) for text in teacher]))
        return "long", np.concatenate(texts), lengths, (count, *taught)


def contrast(left, right, temperature, same=None, wrong=None):
    """Cross entropy of each left against all rights, and the other way round."""
    scores = left @ right.T / temperature
    if same is not None:
        scores = scores.masked_fill(same, -1e4)
    target = torch.arange(len(left), device=DEVICE)
    wide = scores if wrong is None else torch.cat([scores, left @ wrong.T / temperature], 1)
    return 0.5 * (functional.cross_entropy(wide, target) + functional.cross_entropy(scores.T, target))


def likeness(vectors, near, temperature):
    """How far the similarities of the texts are from those that the second teacher sees, read as chances."""
    own = torch.eye(len(vectors), dtype=torch.bool, device=DEVICE)
    seen = (vectors @ vectors.T / temperature).masked_fill(own, -1e4).log_softmax(1)
    taught = (near @ near.T / SECOND_TEMPERATURE).masked_fill(own, -1e4).softmax(1)
    return functional.kl_div(seen, taught, reduction="batchmean")


def losses(batch, student, teacher, known, second, options):
    """The contrastive loss, the anchor, and their weighted sum."""
    kind, flat, lengths, rest = batch
    vectors = student(flat, lengths)
    if kind == "second":
        chosen = torch.from_numpy(rest[0]).to(DEVICE)
        near, place = second[0][chosen].float(), second[1][chosen].float()
        contrasted = likeness(vectors, near, options.temperature)
        anchor = (1 - (vectors * place).sum(1)).mean()
        return contrasted, anchor, options.second * contrasted + options.second_place * anchor
    if kind == "long":
        count, old_flat, old_lengths = rest
        with torch.no_grad():
            taught = teacher(old_flat, old_lengths).float()
        foreign, english, asked, asked_english = vectors.split(count)
        anchor = (2 - (foreign * taught).sum(1) - (english * taught).sum(1)).mean()
        t = options.temperature
        contrasted = 0.4 * contrast(foreign, english, t) + 0.3 * contrast(asked, foreign, t)
        contrasted = contrasted + 0.15 * contrast(asked, english, t) + 0.15 * contrast(asked_english, foreign, t)
        return contrasted, anchor, CONTRAST["par"] * contrasted + options.anchor * anchor
    count, left_rows, right_rows, teacher_rows = rest
    left, right = vectors[:count], vectors[count : 2 * count]
    wrong = vectors[2 * count :] if len(vectors) > 2 * count else None
    ids = torch.from_numpy(np.stack([left_rows, right_rows]).astype(np.int64)).to(DEVICE, non_blocking=True)
    same = (ids[0][:, None] == ids[0][None]) | (ids[1][:, None] == ids[1][None])
    same.fill_diagonal_(False)
    contrasted = contrast(left, right, options.temperature, same, wrong)
    rows = torch.from_numpy(teacher_rows[: 2 * count]).to(DEVICE, non_blocking=True)
    taught = known[rows.clamp(min=0)].float()
    has = (rows >= 0).float()
    if kind in ("par", "dic"):  # both sides learn the vector of the English one
        target, there = taught[count:], has[count:]
        anchor = ((2 - (left * target).sum(1) - (right * target).sum(1)) * there).mean()
        weight = options.anchor
    elif kind == "say":  # the translation learns where the English text is now, not where it began
        follow = (1 - (left * right.detach()).sum(1)).mean()
        anchor = ((1 - (right * taught[count:]).sum(1)) * has[count:]).mean() + options.follow * follow
        weight = options.anchor_talk
    else:
        anchor = ((1 - (vectors[: 2 * count] * taught).sum(1)) * has).sum() / count
        weight = options.anchor if kind == "qd" else options.anchor_talk
    return contrasted, anchor, CONTRAST[kind] * contrasted + weight * anchor


def feed(data: Data, options: argparse.Namespace) -> tuple[Queue, list]:
    """A queue that worker processes fill."""
    context = multiprocessing.get_context("fork")
    shared = context.Queue(48)

    def work(number: int) -> None:
        torch.set_num_threads(1)
        batches = Batches(data, options, number)
        while True:
            shared.put(batches.next())

    workers = [context.Process(target=work, args=(number,), daemon=True) for number in range(options.workers)]
    for worker in workers:
        worker.start()
    ready: Queue = Queue(24)

    def move() -> None:
        while True:
            ready.put(shared.get())

    for _ in range(2):
        threading.Thread(target=move, daemon=True).start()
    return ready, workers


def second_places(data: Data, known: torch.Tensor, steps: int = 2_500) -> tuple[torch.Tensor, torch.Tensor]:
    """The second teacher's vectors, and where they lie in Granite's space.

    A small network learns that from English texts, whose Granite vectors are known; other languages follow.
    """
    a = data.arrays
    vectors = torch.from_numpy(a["second_vectors"]).to(DEVICE)
    taught = torch.from_numpy(data.teacher_row[a["second"]]).to(DEVICE)
    english = (taught >= 0).nonzero()[:, 0]
    generator = torch.Generator(device=DEVICE).manual_seed(17)
    english = english[torch.randperm(len(english), generator=generator, device=DEVICE)]
    kept, english = english[:4_000], english[4_000:]
    wide = 3_072
    network = torch.nn.Sequential(
        torch.nn.Linear(vectors.shape[1], wide), torch.nn.GELU(), torch.nn.Linear(wide, known.shape[1])
    ).to(DEVICE)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        drawn = english[torch.randint(len(english), (4_096,), generator=generator, device=DEVICE)]
        with torch.autocast(DEVICE, torch.bfloat16):
            made = network(vectors[drawn].float())
        loss = (1 - functional.cosine_similarity(made.float(), known[taught[drawn]].float())).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        schedule.step()
    with torch.no_grad():
        places = torch.cat(
            [functional.normalize(network(part.float()), dim=-1).half() for part in vectors.split(65_536)]
        )
    cosine = (places[kept].float() * known[taught[kept]].float()).sum(1).mean()
    print("place in Granite's space, cosine on texts kept back:", round(float(cosine), 4))
    has = taught >= 0
    places[has] = known[taught[has]]  # English texts have their own
    return vectors, places


def train(options: argparse.Namespace) -> Encoder:
    """Train for the given time, and return the encoder."""
    torch.manual_seed(options.seed)
    began = time.time()
    data = Data(options.data)
    ready, workers = feed(data, options)
    _, _, tensors = read_pack(options.folder / "granite.hmsemb")
    teacher = Packed(Encoder(tensors).to(DEVICE).eval())
    if options.start:
        values = load(options.start, len(tensors["word_emb"]))
        encoder = Encoder(tensors, values["new"]).to(DEVICE)
        encoder.load_state_dict(values)
    else:
        first = np.load(options.folder / "new_rows.npz")
        rows = tensors["word_emb"][first["rows"].astype(np.int64)]
        encoder = Encoder(tensors, (rows * first["shares"].astype(np.float32)[:, :, None]).sum(1)).to(DEVICE)
    a = data.arrays
    known = embed(teacher, a["old_flat"], a["old_offsets"], np.arange(len(a["english"]))).half()
    print("teacher", tuple(known.shape), round(time.time() - began), "s", flush=True)
    second = second_places(data, known) if "second" in shares(options.shares) else None
    print("ready", round(time.time() - began), "s", flush=True)
    student = Packed(encoder)
    tables = {"word", "new"}
    body = [values for name, values in encoder.named_parameters() if name not in tables]
    optimizer = torch.optim.AdamW(
        [
            {"params": body, "lr": options.rate, "weight_decay": 0.01},
            {"params": [encoder.word], "lr": options.rate_old, "weight_decay": 0.0},
            {"params": [encoder.new], "lr": options.rate_new, "weight_decay": 0.0},
        ],
        betas=(0.9, 0.98),
        eps=1e-8,
        fused=True,
    )
    rates = [group["lr"] for group in optimizer.param_groups]
    seen: dict[str, list[float]] = {}
    step = tokens = 0
    clock = time.time()
    while True:
        if step < 40:  # compiling is not training
            clock = time.time()
        passed = (time.time() - clock) / options.seconds
        if passed >= 1:
            break
        factor = min(1.0, (step + 1) / 200) * (0.485 * (1 + math.cos(math.pi * passed)) + 0.03)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * factor
        batch = ready.get()
        contrasted, anchor, loss = losses(batch, student, teacher, known, second, options)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        tokens += len(batch[1])
        if step % 10 == 0:
            sums = seen.setdefault(batch[0], [0.0, 0.0, 0])
            sums[0] += float(contrasted.detach())
            sums[1] += float(anchor.detach())
            sums[2] += 1
        if step in (50, 300) or step % 1_500 == 0:
            means = {kind: (round(c / n, 3), round(d / n, 4)) for kind, (c, d, n) in seen.items()}
            print(step, round(time.time() - clock), "s", tokens // 10**6, "M tokens", means, flush=True)
            seen = {}
            write_weights(encoder, options.out / f"{options.name}-compact.npz")  # if it is cut off
    print("trained", step, "steps", tokens // 10**6, "M tokens", round(time.time() - began), "s in all", flush=True)
    for worker in workers:
        worker.terminate()
    return encoder.eval()


def held_back(encoder: Encoder, data: Data) -> None:
    """Accuracy on what was kept back: translations, headings and questions, talks, by language."""
    a, packed = data.arrays, Packed(encoder, compiled=False)

    def first(left: np.ndarray, right: np.ndarray) -> float:
        scores = embed(packed, data.flat, data.offsets, left) @ embed(packed, data.flat, data.offsets, right).T
        rows = torch.from_numpy(right.astype(np.int64)).to(DEVICE)
        return float((rows[scores.argmax(1)] == rows).float().mean())

    made = {}
    for kind in ("par", "dic", "qd", "dlg"):
        for language in np.unique(a["held_la"]):
            chosen = np.flatnonzero((a["held_kind"] == kind) & (a["held_la"] == language))[:2_000]
            if len(chosen) >= 30:
                made[f"{kind} {language}"] = (round(first(a["held_a"][chosen], a["held_b"][chosen]), 3), len(chosen))
    print("held back, right at rank 1:", made)
    for source in np.unique(a["source_of"]):
        messages = np.flatnonzero((a["source_of"] == source) & a["held_of"])
        messages = messages[np.diff(a["asked_at"])[messages] > 0]
        languages = data.arrays["language"][a["said"][messages, 0]]
        scores = {}
        for language in np.unique(languages):
            here = messages[languages == language]
            own = first(a["asked"][a["asked_at"][here]], a["said"][here, 0])
            across = first(a["asked"][a["asked_at"][here + 1] - 1], a["said"][here, 1])
            other = first(a["asked"][a["asked_at"][here]], a["said"][here, 1])
            scores[str(language)] = (round(own, 3), round(other, 3), round(across, 3), len(here))
        print("talks", source, "own, to English, English:", scores, flush=True)


def save(encoder: Encoder, path: Path) -> None:
    """The weights as float16, to go on training from."""
    np.savez(path, **{name: values.cpu().numpy().astype(np.float16) for name, values in encoder.state_dict().items()})


def load(path: Path, words: int) -> dict[str, torch.Tensor]:
    """The weights that `save` or `write_weights` wrote; the table of the latter has the first pieces' rows first."""
    with np.load(path) as stored:
        values = {name.replace(".", "_"): stored[name].astype(np.float32) for name in stored.files}
    if "word_codes" in values:
        table = values.pop("word_codes") * values.pop("word_scales")
        values = {"word": table[:words], "new": table[words:], "position": values.pop("position")} | {
            f"body.{name}": value for name, value in values.items()
        }
    else:
        values = {name.replace("body_", "body."): value for name, value in values.items()}
    return {name: torch.tensor(value) for name, value in values.items()}


if __name__ == "__main__":
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    trained = train(chosen)
    save(trained, chosen.out / f"{chosen.name}.npz")
    write_weights(trained, chosen.out / f"{chosen.name}-compact.npz")
    held_back(trained, Data(chosen.data))
