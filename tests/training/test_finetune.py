"""Fine-tuning on a CPU: the network is that of the export, and a step at the start has nothing to hold back."""

from __future__ import annotations

import random

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch trains the model; the product never needs it")

import torch
from training.export import float_pass, load_weights
from training.model import Packed, embed, read_weights, write_weights
from training.resume import main as resume

from tests.embedding.local.exported_model import shipped_folder
from training import finetune, finetune_data


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    path = tmp_path_factory.mktemp("finetune") / "start.npz"
    resume(shipped_folder(), path)
    return path


@pytest.fixture(scope="module")
def data_file(start, tmp_path_factory):
    """Two talks of four messages, in German with English renderings, and what stays."""
    choice = np.random.default_rng(3)
    texts = [
        np.concatenate([[0], choice.integers(1_000, 90_000, size), [2]])
        for size in [*choice.integers(5, 30, 40), 150, 200, 200, 300]
    ]
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
    flat = np.concatenate(texts).astype(np.int32)
    rows = np.arange(len(texts))
    vectors = embed(Packed(read_weights(start), compiled=False), flat, offsets, rows).half().numpy()
    said = np.arange(16).reshape(8, 2)
    asked = np.arange(16, 32).reshape(8, 2)
    path = tmp_path_factory.mktemp("finetune") / "data.npz"
    np.savez(
        path,
        flat=flat,
        offsets=offsets,
        language=np.array([["de", "en"][row % 2] for row in rows]),
        vectors=vectors,
        staying=np.arange(40, 44),
        stays=np.arange(32, 40),
        said=np.array([[0, 1], [2, 3], [4, 5]]),
        found=np.array([[16, 40], [17, 41], [18, 42]]),
        kept=np.zeros((0, 2), np.int32),
        kept_name=np.array([], "U20"),
        talk_said=said,
        talk_asked=asked.ravel(),
        talk_asked_at=np.arange(0, 17, 2),
        talk_of=np.repeat([0, 1], 4),
        talk_source=np.array(["fact"] * 8),
        talk_held=np.zeros(8, bool),
        talk_follows=np.ones(8, bool),
    )
    return path


def test_the_network_on_a_cpu_gives_the_vectors_of_the_export(start):
    weights = load_weights(start)
    texts = [[0, *(np.arange(size) * 977 % 90_000 + 4).tolist(), 2] for size in (5, 5, 40, 200)]
    vectors = finetune.run(Packed(read_weights(start), compiled=False), [np.array(ids, np.int32) for ids in texts])
    for ids, vector in zip(texts, vectors.detach().numpy(), strict=True):
        expected = float_pass(weights, ids)
        assert vector @ expected / np.linalg.norm(expected) > 0.998  # bfloat16


def test_weights_that_are_saved_are_those_that_were_read(start, tmp_path):
    write_weights(read_weights(start), tmp_path / "again.npz")
    first, again = load_weights(start), load_weights(tmp_path / "again.npz")
    assert first.keys() == again.keys()
    assert all(np.allclose(first[name], again[name], atol=1e-6) for name in first)


def test_the_mean_of_weights_lies_between_them(start, tmp_path):
    encoder = read_weights(start)
    with torch.no_grad():
        encoder.body["l0_f1_w"] += 0.5
    write_weights(encoder, tmp_path / "other.npz")
    finetune.mean(tmp_path / "mean.npz", [f"1={tmp_path / 'other.npz'}", f"3={start}"])
    moved = load_weights(tmp_path / "mean.npz")["l0.f1.w"] - load_weights(start)["l0.f1.w"]
    assert np.allclose(moved, 0.125, atol=2e-3)


def test_a_passage_has_each_text_once_and_fits():
    parts = [np.full(size, size) for size in range(10, 120)]
    passages = list(finetune_data.filled(parts, random.Random(1)))
    places = [place for passage in passages for place in passage]
    assert len(places) == len(set(places)) > 90
    assert all(sum(len(parts[place]) for place in passage) <= finetune_data.LONGEST for passage in passages)


def test_nothing_has_moved_at_the_start(start, data_file, tmp_path):
    options = finetune.parser.parse_args([str(start), str(data_file), str(tmp_path), "--budget", "2000"])
    data = finetune.Data(data_file)
    steps = finetune.Steps(data, options)
    step = steps.next()
    made = finetune.losses(
        step, finetune.run(Packed(read_weights(start), compiled=False), step.texts), data, steps, options
    )
    assert set(made) == {"talk", "found", "english", "follow", "said", "stay", "passage"}
    for name in ("english", "stay", "passage"):
        assert float(made[name].detach()) < 2e-3
    assert float(made["follow"].detach()) > 0.1  # random texts are no translations
