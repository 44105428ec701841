"""The model in PyTorch: post-norm BERT blocks over texts that are packed one after another without padding.

On a CPU, where nothing attends to texts of different lengths at once, texts have to come in the order of their lengths.
"""

import math
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

HIDDEN, HEADS, EPSILON = 384, 12, 1e-12
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Encoder(nn.Module):
    """Weights under the names of the Granite pack; rows of new pieces are a parameter of their own."""

    def __init__(self, tensors: dict[str, np.ndarray], new_rows: np.ndarray | None = None) -> None:
        super().__init__()

        def parameter(values: np.ndarray) -> nn.Parameter:
            return nn.Parameter(torch.tensor(np.asarray(values, np.float32)))

        self.word = parameter(tensors["word_emb"])
        self.new = parameter(np.zeros((0, HIDDEN)) if new_rows is None else new_rows)
        self.position = parameter(tensors["pos_emb"][2:] + tensors["type_emb"][0])
        outside = ("word_emb", "pos_emb", "type_emb")
        self.body = nn.ParameterDict(
            {name.replace(".", "_"): parameter(values) for name, values in tensors.items() if name not in outside}
        )
        self.layers = 1 + max(int(name[1]) for name in tensors if name[0] == "l" and name[1].isdigit())


def attend(q, k, v, query_bounds, bounds, longest_query, longest):
    """Attention of each text's queries to its own keys."""
    if q.is_cuda:
        from torch.nn.attention.varlen import varlen_attn

        return varlen_attn(q, k, v, query_bounds, bounds, longest_query, longest)
    lengths, counts = (values.tolist() for values in (bounds[1:] - bounds[:-1]).unique_consecutive(return_counts=True))
    groups = []
    for values, widths in ((q, [1] * len(lengths) if longest_query == 1 else lengths), (k, lengths), (v, lengths)):
        parts = values.split([count * width for count, width in zip(counts, widths, strict=True)])
        shapes = zip(parts, counts, widths, strict=True)
        groups.append([part.view(n, width, HEADS, -1).transpose(1, 2) for part, n, width in shapes])
    made = []
    for queries, keys, own in zip(*groups, strict=True):
        if keys.shape[2] > 128:
            mixed = functional.scaled_dot_product_attention(queries, keys, own)
        else:  # several times as fast on the way back
            scores = (queries.float() / math.sqrt(HIDDEN // HEADS)) @ keys.float().transpose(2, 3)
            mixed = scores.softmax(-1).to(own.dtype) @ own
        made.append(mixed.transpose(1, 2).reshape(-1, HEADS, HIDDEN // HEADS))
    return torch.cat(made)


def forward(word, new, position, body, layers, ids, at, starts, ends_of_queries, bounds, longest):
    """Unit vectors of the first token of each text; the last layer computes that token only."""
    total = ids.shape[0]

    def weight(name: str) -> torch.Tensor:
        return body[name].bfloat16()

    def norm(values: torch.Tensor, name: str) -> torch.Tensor:
        return functional.layer_norm(values, (HIDDEN,), weight(name + "_w"), weight(name + "_b"), EPSILON)

    words = (
        functional.embedding(ids, torch.cat([word, new])) if len(new) else functional.embedding(ids, word, sparse=True)
    )
    x = norm((words + functional.embedding(at, position)).bfloat16(), "emb_ln")
    for n in range(layers):
        layer = f"l{n}_"
        qkv_w, qkv_b = weight(layer + "qkv_w"), weight(layer + "qkv_b")
        if n < layers - 1:
            qkv = functional.linear(x, qkv_w, qkv_b).view(total, 3, HEADS, -1)
            q, k, v = (qkv[:, part].contiguous() for part in range(3))
            mixed = attend(q, k, v, bounds, bounds, longest, longest).reshape(total, HIDDEN)
            rest = x
        else:
            rest = x[starts]
            q = functional.linear(rest, qkv_w[:HIDDEN], qkv_b[:HIDDEN]).view(-1, HEADS, HIDDEN // HEADS)
            kv = functional.linear(x, qkv_w[HIDDEN:], qkv_b[HIDDEN:]).view(total, 2, HEADS, -1)
            k, v = kv[:, 0].contiguous(), kv[:, 1].contiguous()
            mixed = attend(q, k, v, ends_of_queries, bounds, 1, longest).reshape(-1, HIDDEN)
        x = norm(rest + functional.linear(mixed, weight(layer + "ao_w"), weight(layer + "ao_b")), layer + "aln")
        inner = functional.gelu(functional.linear(x, weight(layer + "f1_w"), weight(layer + "f1_b")))
        x = norm(x + functional.linear(inner, weight(layer + "f2_w"), weight(layer + "f2_b")), layer + "fln")
    return functional.normalize(x.float(), dim=-1)


class Packed:
    """Runs an encoder over flat ids."""

    def __init__(self, encoder: Encoder, compiled: bool = True) -> None:
        self.encoder = encoder
        self.run = torch.compile(forward, dynamic=True) if compiled else forward

    def __call__(self, flat: np.ndarray, lengths: np.ndarray) -> torch.Tensor:
        ids = torch.from_numpy(flat).to(DEVICE, non_blocking=True).long()
        edges = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        bounds = torch.from_numpy(edges).to(DEVICE, non_blocking=True)
        starts = bounds[:-1].long()
        counts = (bounds[1:] - bounds[:-1]).long()
        at = torch.arange(len(ids), device=DEVICE)
        at = at - torch.repeat_interleave(starts, counts, output_size=len(ids))
        queries = torch.arange(len(lengths) + 1, device=DEVICE, dtype=torch.int32)
        longest = next(size for size in (32, 64, 128, 256, 512) if size >= int(lengths.max()))
        e = self.encoder
        body = dict(e.body.items())
        return self.run(e.word, e.new, e.position, body, e.layers, ids, at, starts, queries, bounds, longest)


@torch.no_grad()
def embed(
    packed: Packed, flat: np.ndarray, offsets: np.ndarray, rows: np.ndarray, budget: int = 262_144
) -> torch.Tensor:
    """Vectors of the texts with these rows, in their order."""
    lengths = np.diff(offsets)[rows]
    order = np.argsort(lengths, kind="stable")
    out = torch.empty(len(rows), HIDDEN, device=DEVICE)
    edges = np.cumsum(lengths[order])
    at = 0
    while at < len(order):
        end = int(np.searchsorted(edges, (edges[at - 1] if at else 0) + budget, "right"))
        chosen = order[at : max(end, at + 1)]
        pieces = np.concatenate([flat[offsets[row] : offsets[row + 1]] for row in rows[chosen]])
        out[torch.from_numpy(chosen).to(DEVICE)] = packed(pieces, lengths[chosen]).float()
        at += len(chosen)
    return out


def read_weights(path: Path) -> Encoder:
    """The encoder with the weights that `resume.py` or `write_weights` wrote; all pieces are in one table."""
    with np.load(path) as stored:
        values = {name: stored[name].astype(np.float32) for name in stored.files}
    values["word_emb"] = values.pop("word_codes") * values.pop("word_scales")
    position = values.pop("position")
    values["pos_emb"] = np.concatenate([np.zeros((2, HIDDEN), np.float32), position])
    values["type_emb"] = np.zeros((1, HIDDEN), np.float32)
    return Encoder(values)


def write_weights(encoder: Encoder, path: Path) -> None:
    """The weights under the names of the pack: the embedding table in 8 bits a value, the rest as float16."""
    table = torch.cat([encoder.word, encoder.new]).detach().cpu().numpy()
    scales = (np.abs(table).max(1, keepdims=True) / 127 + 1e-12).astype(np.float32)
    half = {
        (name[:-2].replace("_", ".", 1) if name[0] == "l" else name[:-2]) + "." + name[-1]: values
        for name, values in encoder.body.items()
    } | {"position": encoder.position}
    codes = np.round(table / scales).astype(np.int8)
    body = {name: values.detach().cpu().numpy().astype(np.float16) for name, values in half.items()}
    np.savez(path, word_codes=codes, word_scales=scales, **body)
