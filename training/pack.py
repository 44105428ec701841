"""Reads the packaged Granite model: its header, its tokenizer and its weights as float32 arrays."""

import gzip
import json
import struct
from pathlib import Path

import numpy as np

GROUP = 64


def read_tokenizer(folder: Path) -> str:
    """The tokenizer of a model folder, which may be compressed."""
    path = folder / "tokenizer.json"
    return path.read_text() if path.exists() else gzip.decompress((folder / "tokenizer.json.gz").read_bytes()).decode()


def read_pack(path: Path) -> tuple[dict, str, dict[str, np.ndarray]]:
    """The header, the tokenizer's JSON and the tensors of a `.hmsemb` file."""
    data = path.read_bytes()
    (header_length,) = struct.unpack_from("<Q", data, 8)
    header = json.loads(data[16 : 16 + header_length])
    at = 16 + header_length
    tokenizer = data[at : at + header["tokenizer_len"]].decode()
    at += header["tokenizer_len"]
    tensors = {}
    for tensor in header["tensors"]:
        if tensor["dtype"] == "f32":
            values = np.frombuffer(data, "<f4", tensor["len"] // 4, at).reshape(tensor["shape"]).copy()
        else:
            rows, columns = tensor["shape"]
            codes = np.frombuffer(data, np.int8, rows * columns, at).astype(np.float32).reshape(rows, -1, GROUP)
            scales = np.frombuffer(data, "<f4", rows * columns // GROUP, at + rows * columns).reshape(rows, -1, 1)
            values = (codes * scales).reshape(rows, columns)
        tensors[tensor["name"]] = values
        at += tensor["len"]
    return header, tokenizer, tensors
