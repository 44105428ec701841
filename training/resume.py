"""Reads the weights back from an exported model, so that another round of training can start from it.

    python -m training.resume MODEL_FOLDER OUT.npz

Undoes what `export.py` did to the channels of each product; what 8 bits lost stays lost. OUT.npz has the layout of
`write_weights` in `model.py`.
"""

import sys
from pathlib import Path

import numpy as np

Tensors = dict[str, np.ndarray]


def weights_of(tensors: Tensors) -> Tensors:
    """The tensors of an exported graph under the names of the Granite pack."""

    def product(name: str) -> np.ndarray:
        """The matrix of a product, inputs x outputs."""
        return tensors[f"{name}.values"].astype(np.float32) * tensors[f"{name}.scales"]

    def unsmoothed(matrix: np.ndarray, bias: np.ndarray, place: str) -> tuple[np.ndarray, np.ndarray]:
        """The matrix and bias that read the channels as they were before they were evened out."""
        matrix = matrix * tensors[f"{place}.factor"][:, None]
        offset = tensors.get(f"{place}.offset")
        if offset is not None:
            safe = np.where(tensors[f"{place}.factor"] == 0, 1, tensors[f"{place}.factor"])
            bias = bias - (offset / safe) @ matrix
        return matrix, bias

    made: Tensors = {
        "word_codes": tensors["word_emb"],
        "word_scales": tensors["word_emb.scales"],
        "position": tensors["pos_emb"].astype(np.float16),
    }
    places = [name.removesuffix(".w") for name in tensors if name.endswith(("ln.w",))]
    for name in places:
        made[f"{name}.w"], made[f"{name}.b"] = tensors[f"{name}.w"], tensors[f"{name}.b"]
    layers = 1 + max(int(name[1]) for name in tensors if name[0] == "l" and name[1].isdigit())
    for layer in range(layers):
        name = f"l{layer}"
        parts = [f"{name}.{part}" for part in ("queries", "keys", "values")]
        # The values keep the scale that the export gave them: attention's output matrix has its inverse.
        matrix = np.concatenate([product(part) for part in parts], 1)
        bias = np.concatenate([tensors[f"{part}.bias"] for part in parts])
        matrices = {
            "qkv": unsmoothed(matrix, bias, f"{name}.x"),
            "ao": (product(f"{name}.mixed"), tensors[f"{name}.mixed.bias"]),
            "f1": unsmoothed(product(f"{name}.expanded"), tensors[f"{name}.f1.bias"], f"{name}.a"),
        }
        second, second_bias = unsmoothed(product(f"{name}.reduced"), tensors[f"{name}.reduced.bias"], f"{name}.g")
        second[tensors[f"{name}.kept"]] = tensors[f"{name}.kept.w"]
        matrices["f2"] = (second, second_bias)
        for part, (values, values_bias) in matrices.items():
            made[f"{name}.{part}.w"], made[f"{name}.{part}.b"] = values.T, values_bias
    return {name: values if values.dtype == np.int8 else values.astype(np.float32) for name, values in made.items()}


def main(folder: Path, out: Path) -> None:
    """Write the weights."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(folder / "model.onnx").graph
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    made = weights_of(tensors)
    half = {name: values.astype(np.float16) if name[0] in "lep" else values for name, values in made.items()}
    np.savez(out, **half)
    print(len(made), "tensors,", len(made["word_codes"]), "rows")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
