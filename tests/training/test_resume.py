from __future__ import annotations

import numpy as np
import pytest
from training.export import float_pass, load_weights
from training.resume import main

from tests.embedding.local.exported_model import write_exported_folder


@pytest.mark.slow
def test_training_can_go_on_from_an_exported_model(tmp_path):
    folder = write_exported_folder(tmp_path / "tiny")
    main(folder, tmp_path / "weights.npz")
    trained = load_weights(tmp_path / "tiny-sources" / "weights.npz")
    resumed = load_weights(tmp_path / "weights.npz")
    tokens = [0, *(np.arange(60) * 7 % 250 + 4).tolist(), 2]
    before, after = float_pass(trained, tokens), float_pass(resumed, tokens)
    assert before @ after / np.linalg.norm(before) / np.linalg.norm(after) > 0.998  # what 8 bits lost stays lost
