"""Measures a model by cosine alone: one vector of the first 1,600 characters of each document.

    python -m training.evaluate MODEL SETS_FOLDER [XQUAD_FOLDER]

MODEL is an ONNX folder, or `MODEL_FOLDER:WEIGHTS.npz` (`granite` for the weights of the pack) on a GPU. The sets are
those of `notewell eval`; XQuAD is a folder of `xquad.LANGUAGE.json`. The figure is nDCG@10.

What is longer than 512 tokens is cut off on a GPU, and becomes the mean of several windows in an ONNX folder, as in the
product.
"""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

CHARACTERS, TOKENS = 1_600, 512
Embed = Callable[[list[str]], np.ndarray]


def on_gpu(folder: Path, weights: str) -> Embed:
    """Embeds with the PyTorch model."""
    import torch
    from tokenizers import Tokenizer

    from training.model import DEVICE, Encoder, Packed, embed
    from training.pack import read_pack, read_tokenizer

    _, old, tensors = read_pack(folder / "granite.hmsemb")
    if weights == "granite":
        encoder, tokenizer = Encoder(tensors), Tokenizer.from_str(old)
    else:
        loaded = np.load(weights)
        encoder = Encoder(tensors, loaded["new"].astype(np.float32))
        encoder.load_state_dict({name: torch.tensor(loaded[name].astype(np.float32)) for name in loaded.files})
        tokenizer = Tokenizer.from_str(read_tokenizer(folder))
    packed = Packed(encoder.to(DEVICE).eval(), compiled=False)
    tokenizer.no_truncation()

    def run(texts: list[str]) -> np.ndarray:
        ids = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
        ids = [row if len(row) <= TOKENS else [*row[: TOKENS - 1], 2] for row in ids]
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in ids])]).astype(np.int64)
        flat = np.concatenate([np.array(row, np.int32) for row in ids])
        return embed(packed, flat, offsets, np.arange(len(ids))).cpu().numpy()

    return run


def on_cpu(folder: Path) -> Embed:
    """Embeds with the product's own embedder for ONNX folders."""
    from notewell.embedding.local.onnx_folder import OnnxFolderEmbedder

    embedder = OnnxFolderEmbedder(folder)

    def run(texts: list[str]) -> np.ndarray:
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        vectors = np.concatenate(
            [
                np.asarray(embedder.embed_documents([texts[row] for row in order[at : at + 64]]))
                for at in range(0, len(order), 64)
            ]
        )
        out = np.empty_like(vectors)
        out[order] = vectors
        return out

    return run


def ndcg(ranked: list[str], relevant: dict[str, float]) -> float:
    """The discounted gain of the first ten against the best possible."""
    ideal = sorted(relevant.values(), reverse=True)[:10]
    gain = sum(relevant.get(name, 0) / math.log2(place + 2) for place, name in enumerate(ranked[:10]))
    return gain / sum(value / math.log2(place + 2) for place, value in enumerate(ideal))


def one_set(embed: Embed, folder: Path) -> float:
    """The mean nDCG@10 over the judged questions of a set; a scoped question sees its scope only."""

    def rows(name: str) -> list[dict]:
        return [json.loads(line) for line in (folder / name).read_text(encoding="utf8").splitlines()]

    corpus, queries = rows("corpus.jsonl"), rows("queries.jsonl")
    relevant: dict[str, dict[str, float]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf8").splitlines()[1:]:
        query, document, grade = line.split("\t")[:3]
        if float(grade) > 0:
            relevant.setdefault(query, {})[document] = float(grade)
    queries = [query for query in queries if query["_id"] in relevant]
    titled = folder.name == "scifact"
    texts = [((row["title"] + "\n") if titled else "") + row["text"] for row in corpus]
    documents = embed([text[:CHARACTERS] for text in texts])
    asked = embed([query["text"] for query in queries])
    names = np.array([row["_id"] for row in corpus])
    scopes = np.array([row.get("scope") or "" for row in corpus])
    total = 0.0
    for query, vector in zip(queries, asked, strict=True):
        inside = np.flatnonzero(scopes == (query.get("scope") or ""))
        best = inside[np.argsort(-(documents[inside] @ vector), kind="stable")[:10]]
        total += ndcg(list(names[best]), relevant[query["_id"]])
    return total / len(queries)


def xquad(embed: Embed, folder: Path) -> dict[str, tuple[float, ...]]:
    """By language: its questions to its paragraphs, its questions to English ones, English questions to its own."""
    documents, asked, answers = {}, {}, []
    for path in sorted(folder.glob("xquad.*.json")):
        language = path.name.split(".")[1]
        paragraphs, questions, answers = [], [], []
        for article in json.loads(path.read_text())["data"]:
            for paragraph in article["paragraphs"]:
                questions += [question["question"] for question in paragraph["qas"]]
                answers += [len(paragraphs)] * len(paragraph["qas"])
                paragraphs.append(paragraph["context"][:CHARACTERS])
        documents[language], asked[language] = embed(paragraphs), embed(questions)
    right = np.array(answers)[:, None]

    def score(left: np.ndarray, rows: np.ndarray) -> float:
        found = np.argsort(-(left @ rows.T), axis=1)[:, :10] == right
        return float(np.where(found.any(1), 1 / np.log2(found.argmax(1) + 2), 0).mean())

    made: dict[str, tuple[float, ...]] = {}
    for language, paragraphs in documents.items():
        own = score(asked[language], paragraphs)
        others = (score(asked[language], documents["en"]), score(asked["en"], paragraphs))
        made[language] = (round(own, 3),) if language == "en" else tuple(round(value, 3) for value in (own, *others))
    return made


def main(model: str, sets: Path, xquad_folder: Path | None) -> None:
    """Print the figures of one model."""
    if ":" in model:
        folder, weights = model.split(":", 1)
        embed = on_gpu(Path(folder), weights)
    else:
        embed = on_cpu(Path(model))
    figures = {
        path.parent.name: round(one_set(embed, path.parent), 4)
        for path in sorted(sets.glob("*/corpus.jsonl"))
        if path.parent.name != "anthropic_docs"
    }
    print(model, json.dumps(figures), flush=True)
    if xquad_folder:
        scores = xquad(embed, xquad_folder)
        across = [values[1] for language, values in scores.items() if language != "en"]
        print("xquad own / to English / from English:", scores)
        print("mean, other language to English:", round(float(np.mean(across)), 4), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]) if len(sys.argv) > 3 else None)
