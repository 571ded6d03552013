from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from adahi_lab.papers.tokens.frequency_codes import END, FrequencyCodec, learned_merges, merged
from adahi_lab.papers.tokens.token_checkpoint import CodecSizes, load_codec, save_codec

T, A, N = 8, 2, 14
ARRAYS = {
    "low": np.array([-1.0, -2.0]),
    "high": np.array([1.0, 4.0]),
    "action_scale": np.array([0.5, 1.0]),
    "merges": np.zeros((0, 2), dtype=np.int64),
}


def chunks(count: int, seed: int = 0) -> np.ndarray:
    """Smooth motions: a start, a speed, and a little noise."""
    rng = np.random.default_rng(seed)
    start, speed = rng.uniform(-0.5, 0.5, (2, count, 1, A))
    return (
        start + 0.4 * speed * np.linspace(0, 1, T)[:, None] + 0.01 * rng.normal(size=(count, T, A))
    ).astype(np.float32)


def learned(codebooks: int = N, pairs: int = 40) -> FrequencyCodec:
    plain = FrequencyCodec(ARRAYS, codebooks, T)
    merges = learned_merges(plain.symbols(chunks(500)), plain.codebook_size, pairs)
    return FrequencyCodec({**ARRAYS, "merges": merges}, codebooks, T)


def test_pairs_change_the_number_of_tokens_not_their_meaning() -> None:
    plain, given = FrequencyCodec(ARRAYS, T * A, T), chunks(50, 2)
    paired = learned(T * A)
    np.testing.assert_allclose(
        plain.decode(plain.encode(given)), paired.decode(paired.encode(given)), atol=1e-6
    )


def test_a_chunk_with_too_many_tokens_loses_its_highest_frequencies() -> None:
    given = chunks(50, 3)
    short, whole = learned(3), learned(T * A)
    errors = [np.abs(each.decode(each.encode(given)) - given).mean() for each in (short, whole)]
    assert errors[1] < errors[0] < 1.0


def test_any_tokens_have_a_meaning() -> None:
    codec = learned()
    actions = codec.decode(np.random.default_rng(4).integers(codec.codebook_size, size=(300, N)))
    assert actions.shape == (300, T, A)
    assert ((actions >= codec.low - 1e-5) & (actions <= codec.high + 1e-5)).all()
    ended = codec.decode(np.full((1, N), END))
    np.testing.assert_allclose(ended[0], np.tile((codec.low + codec.high) / 2, (T, 1)), atol=1e-6)


def test_pairs_are_merged_from_the_left_and_in_order() -> None:
    rows = merged(np.array([[1, 1, 1, 2], [1, 2, 1, 2]]), np.array([[1, 1], [1, 2], [6, 6]]), 5)
    assert [row.tolist() for row in rows] == [[5, 6], [7]]


def test_the_most_frequent_pair_is_learned_first() -> None:
    merges = learned_merges(np.array([[1, 2, 3, 1, 2], [1, 2, 4, 3, 4]]), 5, 3)
    assert merges[0].tolist() == [1, 2]
    assert len(merges) == 1  # no other pair occurs twice


def test_files_keep_a_tokenizer(tmp_path: Path) -> None:
    codec = learned()
    save_codec(tmp_path, codec)
    read = load_codec(tmp_path)
    assert read.fingerprint == codec.fingerprint
    np.testing.assert_array_equal(read.encode(chunks(20)), codec.encode(chunks(20)))


def test_pairs_of_later_tokens_are_refused() -> None:
    for pair in ([200, 1], [END, 1]):
        with pytest.raises(ValueError, match="merges: must be pairs of earlier tokens"):
            FrequencyCodec({**ARRAYS, "merges": np.array([pair])}, N, T)


def test_sizes_say_how_many_tokens_a_chunk_has() -> None:
    for wrong in (("fast", 0), ("bins", 4)):
        with pytest.raises(ValueError, match="must be above 0 for fast, and"):
            CodecSizes(wrong[0], T, 100, wrong[1])
