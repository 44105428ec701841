"""Writes GGUF files of a few kilobytes that llama.cpp runs: a BERT and an embeddinggemma in miniature.

The weights are random numbers of a fixed seed: two texts that share words come out closer than two that do not, which
is all that a test can ask of them.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

ALIGNMENT = 32
TYPE_OF = {bool: 7, int: 4, float: 6, str: 8}
WORDS = "the a guest wifi password is what : lighthouse note of and network printer dentist on thursday".split()
SIZE, HEADS, LAYERS, FEED, CONTEXT = 32, 2, 2, 64, 64
GEMMA_LAYERS = 6  # every sixth looks at the whole text; llama.cpp stops the process for a model without such a layer


def write_gguf(path: Path, entries: dict[str, Any], tensors: dict[str, np.ndarray]) -> Path:
    """Write entries and float32 tensors; a shape is given as NumPy has it, GGUF stores it the other way round."""
    head = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(entries))]
    for name, value in entries.items():
        head += [packed_text(name), packed_value(value)]
    offset, data = 0, []
    for name, tensor in tensors.items():
        content = tensor.astype("<f4").tobytes()
        content += b"\0" * (-len(content) % ALIGNMENT)
        head.append(packed_text(name) + struct.pack("<I", tensor.ndim))
        head.append(struct.pack(f"<{tensor.ndim}QIQ", *reversed(tensor.shape), 0, offset))
        data.append(content)
        offset += len(content)
    description = b"".join(head)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(description + b"\0" * (-len(description) % ALIGNMENT) + b"".join(data))
    return path


def packed_text(text: str) -> bytes:
    content = text.encode()
    return struct.pack("<Q", len(content)) + content


def packed_value(value: Any) -> bytes:
    if isinstance(value, list):
        kind = 5 if isinstance(value[0], int) else TYPE_OF[type(value[0])]
        return struct.pack("<IIQ", 9, kind, len(value)) + b"".join(packed(item, kind) for item in value)
    kind = TYPE_OF[type(value)]
    return struct.pack("<I", kind) + packed(value, kind)


def packed(value: Any, kind: int) -> bytes:
    return packed_text(value) if kind == 8 else struct.pack({4: "<I", 5: "<i", 6: "<f", 7: "<?"}[kind], value)


def write_bert(path: Path, *, name: str = "tiny", seed: int = 1, pooling: int | None = 1, **entries: Any) -> Path:
    """Write a BERT with a vocabulary of words, letters and marks."""
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    # llama.cpp marks the beginning of a word where BERT marks what goes on.
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"▁{word}" for word in WORDS)]
    tokens += [token for letter in letters for token in (f"▁{letter}", letter) if token not in tokens]
    description = {
        "general.architecture": "bert",
        "general.name": name,
        "bert.context_length": CONTEXT,
        "bert.embedding_length": SIZE,
        "bert.feed_forward_length": FEED,
        "bert.block_count": LAYERS,
        "bert.attention.head_count": HEADS,
        "bert.attention.layer_norm_epsilon": 1e-12,
        "bert.attention.causal": False,
        **({} if pooling is None else {"bert.pooling_type": pooling}),
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, 2, 3, 3, 3] + [1] * (len(tokens) - 5),
        "tokenizer.ggml.token_type_count": 2,
        "tokenizer.ggml.unknown_token_id": 1,
        "tokenizer.ggml.padding_token_id": 0,
        "tokenizer.ggml.cls_token_id": 2,
        "tokenizer.ggml.bos_token_id": 2,
        "tokenizer.ggml.seperator_token_id": 3,
        "tokenizer.ggml.eos_token_id": 3,
        "tokenizer.ggml.mask_token_id": 4,
        **entries,
    }
    random = Weights(seed)
    tensors = {
        "token_embd.weight": random(len(tokens), SIZE, scale=1.0),
        "token_types.weight": random(2, SIZE),
        "position_embd.weight": random(CONTEXT, SIZE),
        **norm("token_embd_norm"),
    }
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensors[f"{block}{part}.weight"] = random(SIZE, SIZE)
            tensors[f"{block}{part}.bias"] = random(SIZE)
        tensors |= {
            f"{block}ffn_up.weight": random(FEED, SIZE),
            f"{block}ffn_up.bias": random(FEED),
            f"{block}ffn_down.weight": random(SIZE, FEED),
            f"{block}ffn_down.bias": random(SIZE),
            **norm(f"{block}attn_output_norm"),
            **norm(f"{block}layer_output_norm"),
        }
    return write_gguf(path, description, tensors)


def write_embedding_gemma(path: Path, *, seed: int = 1) -> Path:
    """Write an embeddinggemma with one token a byte, so that it knows every writing, and some words."""
    tokens = ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [3, 3, 3, 2] + [6] * 256
    pieces = list(dict.fromkeys(piece for word in ["▁", *(f"▁{word}" for word in WORDS)] for piece in growing(word)))
    tokens += pieces
    kinds += [1] * len(pieces)
    scores = [0.0] * 260 + [float(len(piece)) for piece in pieces]  # the longest piece wins
    arch = "gemma-embedding"
    description = {
        "general.architecture": arch,
        "general.name": "Embeddinggemma 300m",
        f"{arch}.context_length": CONTEXT,
        f"{arch}.embedding_length": SIZE,
        f"{arch}.feed_forward_length": FEED,
        f"{arch}.block_count": GEMMA_LAYERS,
        f"{arch}.attention.head_count": HEADS,
        f"{arch}.attention.head_count_kv": 1,
        f"{arch}.attention.key_length": SIZE // HEADS,
        f"{arch}.attention.value_length": SIZE // HEADS,
        f"{arch}.attention.layer_norm_rms_epsilon": 1e-6,
        f"{arch}.attention.sliding_window": CONTEXT,
        f"{arch}.rope.freq_base": 10000.0,
        f"{arch}.pooling_type": 1,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.bos_token_id": 2,
        "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.ggml.unknown_token_id": 3,
        "tokenizer.ggml.padding_token_id": 0,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_eos_token": True,
        "tokenizer.ggml.add_space_prefix": False,
    }
    random, head = Weights(seed), SIZE // HEADS
    tensors = {"token_embd.weight": random(len(tokens), SIZE, scale=1.0), "output_norm.weight": np.ones(SIZE)}
    for layer in range(GEMMA_LAYERS):
        block = f"blk.{layer}."
        tensors |= {
            f"{block}attn_q.weight": random(SIZE, SIZE),
            f"{block}attn_k.weight": random(head, SIZE),
            f"{block}attn_v.weight": random(head, SIZE),
            f"{block}attn_output.weight": random(SIZE, SIZE),
            f"{block}attn_q_norm.weight": np.ones(head),
            f"{block}attn_k_norm.weight": np.ones(head),
            f"{block}ffn_gate.weight": random(FEED, SIZE),
            f"{block}ffn_up.weight": random(FEED, SIZE),
            f"{block}ffn_down.weight": random(SIZE, FEED),
        }
        for part in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
            tensors[f"{block}{part}.weight"] = np.ones(SIZE)
    return write_gguf(path, description, tensors)


def growing(word: str) -> list[str]:
    """Return the beginnings of a word: a tokenizer that joins pairs has to pass through them."""
    return [word[:end] for end in range(1, len(word) + 1)] + list(word)


def norm(name: str) -> dict[str, np.ndarray]:
    return {f"{name}.weight": np.ones(SIZE), f"{name}.bias": np.zeros(SIZE)}


class Weights:
    """Random weights, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._numbers = np.random.default_rng(seed)

    def __call__(self, *shape: int, scale: float = 0.1) -> np.ndarray:
        return self._numbers.normal(0, scale, shape)
