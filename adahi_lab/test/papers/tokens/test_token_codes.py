from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test.papers.conftest import CODEC, A, K, T

from adahi_lab.papers.tokens.token_checkpoint import load_codec, save_codec
from adahi_lab.papers.tokens.token_codes import BinCodec
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.written_files import save_json

ARRAYS = CODEC.arrays


def test_every_token_survives_decoding_and_encoding() -> None:
    codes = np.random.default_rng(1).integers(K, size=(200, T * A))
    np.testing.assert_array_equal(CODEC.encode(CODEC.decode(codes)), codes)


def test_other_meanings_have_other_fingerprints() -> None:
    wider = BinCodec({**ARRAYS, "high": ARRAYS["high"] + 1.0}, K, T)
    more, longer = BinCodec(ARRAYS, K + 1, T), BinCodec(ARRAYS, K, T + 1)
    assert len({each.fingerprint for each in (CODEC, wider, more, longer)}) == 4


@pytest.mark.parametrize(
    ("changed", "size", "length", "fault"),
    [
        ({"low": np.array([1.0, 1.0])}, K, T, "low, high, action_scale: must be finite, low below high"),
        ({"high": np.array([np.nan, 1.0])}, K, T, "low, high, action_scale: must be finite"),
        ({"action_scale": np.zeros(2)}, K, T, "the scale above 0"),
        ({"low": np.zeros(3)}, K, T, "must be \\(A,\\)"),
        ({}, 2000, T, "codebook_size: 2000, must be from 1 to 1024"),
        ({}, K, 40, "codebooks: 80, must be from 1 to 64"),
    ],
)
def test_impossible_tokenizers_are_refused(
    changed: dict[str, np.ndarray], size: int, length: int, fault: str
) -> None:
    with pytest.raises(ValueError, match=fault):
        BinCodec({**ARRAYS, **changed}, size, length)


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        ({"kind": "letters", "chunk_length": T, "codebook_size": K}, "kind: 'letters', must be"),
        ({"kind": "bins", "chunk_length": 0, "codebook_size": K}, "chunk_length"),
        ({"kind": "bins", "chunk_length": T, "codebook_size": K + 1}, "fingerprint"),
    ],
)
def test_damaged_tokenizers_are_refused(tmp_path: Path, config: dict[str, object], fault: str) -> None:
    save_codec(tmp_path, CODEC)
    path = tmp_path / "tokenizer.json"
    save_json(path, {"format": 1, "fingerprint": CODEC.fingerprint, "config": config})
    with pytest.raises(CheckpointError, match=fault):
        load_codec(tmp_path)
