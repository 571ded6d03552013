from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from adahi_ros.nodes.common.encoders import cached_encoder_from
from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.policies.networks import onnx_cache
from adahi_ros.vision.encoder import Encoder
from adahi_ros.vision.encoder_export import make_network, save_encoder
from adahi_ros.vision.visual_cache import CachedEncoder

SIZE = (64, 80)


@pytest.fixture(scope="module", params=["keypoints", "normalised", "resnet18"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained encoder of each kind, for frames of 64 rows and 80 columns."""
    kind = request.param
    config: dict[str, object] = {"architecture": kind, "image_size": list(SIZE)}
    if kind == "normalised":
        config |= {"architecture": "keypoints", "normalised": True, "layers": 3}
    path = tmp_path_factory.mktemp("encoder") / kind
    torch.manual_seed(0)
    save_encoder(path, make_network(config).eval(), config, {})
    return path


def scene(seed: int = 0, size: tuple[int, int] = SIZE) -> np.ndarray:
    """A frame of coarse blocks, (1, H, W, 3)."""
    blocks = np.random.default_rng(seed).integers(40, 200, (size[0] // 8, size[1] // 8, 3))
    return np.kron(blocks, np.ones((8, 8, 1))).astype(np.uint8)[None]


def spotted(frame: np.ndarray, row: int, column: int) -> np.ndarray:
    with_spot = frame.copy()
    with_spot[0, row : row + 6, column : column + 6] = 255
    return with_spot


def test_the_first_frame_has_the_encoders_features(path: Path) -> None:
    cached = CachedEncoder(path)
    np.testing.assert_allclose(cached.encode(scene()), Encoder.load(path).encode(scene()), atol=2e-3)
    assert (cached.frames, cached.looks, cached.seen) == (1, 1, 1.0)


def test_a_static_view_runs_no_network(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached = CachedEncoder(path)
    first = cached.encode(scene())

    def run(*arguments: object) -> None:
        raise AssertionError("the network was run")

    for session in (cached._parts._cells, cached._parts._encoder._session):
        if session is not None:
            monkeypatch.setattr(session, "run", run)
    for _ in range(3):
        np.testing.assert_array_equal(cached.encode(scene()), first)
    grain = np.random.default_rng(1).normal(scale=2.5, size=(1, *SIZE, 3))
    noisy = np.rint(np.clip(1.05 * scene() + grain, 0, 255)).astype(np.uint8)
    np.testing.assert_array_equal(
        cached.encode(noisy), first
    )  # and as little with a camera's grain and exposure
    with pytest.raises(AssertionError, match="was run"):
        cached.encode(spotted(scene(), 20, 20))


def test_a_frame_that_comes_again_runs_no_network(path: Path) -> None:
    cached = CachedEncoder(path, tolerance=0.0)
    cached.encode(scene())
    dark = np.rint(0.9 * spotted(scene(), 20, 20)).astype(np.uint8)
    once, looks = cached.encode(dark), cached.looks
    np.testing.assert_array_equal(cached.encode(dark), once)
    assert cached.looks == looks


@pytest.mark.parametrize(("row", "column"), [(0, 0), (30, 14), (58, 74), (13, 60)])
def test_a_changed_part_is_encoded_as_if_the_whole_frame_was(path: Path, row: int, column: int) -> None:
    cached, encoder = CachedEncoder(path), Encoder.load(path)
    cached.encode(scene())
    for frame in (spotted(scene(), row, column), spotted(scene(), row + 0, 40), scene()):
        np.testing.assert_allclose(cached.encode(frame), encoder.encode(frame), atol=2e-3)
    assert cached.looks == 4


def test_less_is_looked_at_where_less_has_changed(path: Path) -> None:
    cached = CachedEncoder(path)
    cached.encode(scene())
    cached.encode(spotted(scene(), 2, 2))
    whole = "resnet18" in path.name
    assert cached.seen == 1.0 if whole else cached.seen < 0.8


def test_what_is_looked_at_is_held_to_a_stricter_bound(path: Path) -> None:
    if "resnet18" in path.name:
        pytest.skip("all of it is looked at")
    frame = scene()
    cached = CachedEncoder(path)
    cached.encode(frame)
    (kept,) = cached._kept
    assert kept is not None
    looked = kept.looked
    looked[:], looked[1, 1] = False, True
    for there, looks in (((2, 3), 1), ((1, 1), 2)):
        nudged = frame.astype(int)
        rows, columns = (slice(16 * each, 16 * each + 16) for each in there)
        nudged[0, rows, columns] += np.where(np.indices((16, 16)).sum(axis=0) % 2, 6, -6)[..., None]
        cached.encode(nudged.astype(np.uint8))
        assert cached.looks == looks, there


def test_a_slow_change_is_seen_in_the_end(path: Path) -> None:
    cached, encoder = CachedEncoder(path), Encoder.load(path)
    cached.encode(scene())
    for level in range(0, 120, 3):  # each step alone is below every bound
        frame = scene()
        frame[0, 20:30, 20:30] = np.clip(frame[0, 20:30, 20:30].astype(int) - level, 0, 255)
        found = cached.encode(frame)
    assert cached.looks > 1
    scale = np.ptp(encoder.encode(np.concatenate([scene(), frame])), axis=0).max()
    assert np.abs(found - encoder.encode(frame)).max() < max(0.5 * scale, 0.02)


@pytest.mark.parametrize("moved", [(0, 16), (-6, 0), (4, -10)])
def test_a_view_that_moves_takes_what_is_kept_with_it(path: Path, moved: tuple[int, int]) -> None:
    if "resnet18" in path.name:
        pytest.skip("all of it is looked at anew")
    world = scene(3, (128, 144))
    before = world[:, 32:96, 32:112]
    after = world[:, 32 - moved[0] : 96 - moved[0], 32 - moved[1] : 112 - moved[1]]
    blind, informed, fresh = CachedEncoder(path), CachedEncoder(path), CachedEncoder(path)
    for cached, shifts in ((blind, None), (informed, np.array([moved]))):
        cached.encode(before)
        cached.encode(after, shifts)
    fresh.encode(after)
    old, new = informed._kept[0], fresh._kept[0]
    assert old is not None
    assert new is not None
    np.testing.assert_array_equal(old.frame, after[0])
    inner = slice(4, -4)  # at the new edges it knows what lies beyond
    found, wanted = (each.maps[:, inner, inner] for each in (old, new))
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert informed.seen < blind.seen or all(moved)  # two edges are all around


def test_cameras_are_kept_apart(path: Path) -> None:
    cached, encoder = CachedEncoder(path), Encoder.load(path)
    both = np.concatenate([scene(1), scene(2)])
    for _ in range(2):
        np.testing.assert_allclose(cached.encode(both), encoder.encode(both), atol=2e-3)
    assert (cached.frames, cached.looks) == (4, 2)
    cached.forget()
    cached.encode(both)
    assert cached.looks == 2


def test_what_is_no_frame_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="must be uint8"):
        CachedEncoder(path).encode(scene().astype(np.float32))


def test_parts_are_made_once(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    CachedEncoder(path)
    made = {file: file.stat().st_mtime_ns for file in onnx_cache.cache_folder().glob("*")}
    CachedEncoder(path)
    assert {file: file.stat().st_mtime_ns for file in onnx_cache.cache_folder().glob("*")} == made


def test_a_robots_node_gets_one_that_has_seen_nothing(path: Path) -> None:
    cached = cached_encoder_from(str(path))
    assert (cached.frames, cached.looks) == (0, 0)
    with pytest.raises(ParameterError, match=r"encoder_cache: of '.*missing', cannot be loaded"):
        cached_encoder_from(str(path.with_name("missing")))
