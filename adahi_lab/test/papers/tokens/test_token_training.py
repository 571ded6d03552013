"""A token policy learns chunks that hang together, by its seed alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test.toys import two_ways

from adahi_lab.papers.tokens.token_checkpoint import CodecSizes, save_codec
from adahi_lab.papers.tokens.token_torch import save_tokens
from adahi_lab.papers.tokens.token_training import codec_of, train_tokens
from adahi_lab.training.fitting import FitConfig, Run
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy

SIZE = {"width": 16, "layers": 1, "heads": 2}
SIZES = CodecSizes("bins", chunk_length=4, codebook_size=8)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    """Trained on two ways."""
    data, folder = two_ways(), tmp_path_factory.mktemp("two_ways")
    codec = codec_of(data, SIZES)
    network, losses = train_tokens(data, codec, 1, SIZE, FitConfig(300, 64, 5e-3), Run(4))
    assert np.mean(losses[-20:]) < 0.3
    save_codec(folder, codec)
    save_tokens(folder, "target", network, {})
    return load_policy(folder / "target", "onnxruntime")


def test_a_stopped_run_ends_with_the_same_weights(tmp_path: Path) -> None:
    data, config = two_ways(), FitConfig(6, 8)
    codec = codec_of(data, SIZES)
    whole, _ = train_tokens(data, codec, 1, SIZE, config, Run(4))

    def stop(step: int, loss: float) -> None:
        if step == 5:
            raise KeyboardInterrupt

    state = tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        train_tokens(data, codec, 1, SIZE, config, Run(4, state, save_every=3, on_step=stop))
    resumed, losses = train_tokens(data, codec, 1, SIZE, config, Run(4, state))
    assert len(losses) == 6
    for name, value in whole.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), resumed.state_dict()[name].numpy())
