from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from test.papers.conftest import CODEC, TARGET, G, H

from adahi_lab.papers.tokens.token_checkpoint import load_tokens, save_codec
from adahi_lab.papers.tokens.token_network import TokenNetwork
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_lab.papers.tokens.token_sequence import TokenDistribution
from adahi_lab.papers.tokens.token_torch import load_network, save_tokens
from adahi_lab.papers.vln_cache.patch_cache import CachedTokens, MovingCamera, load_cached
from adahi_lab.training.recipes import load_recipe
from adahi_ros.core.assets import asset
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.signature import Observations
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy
from adahi_ros.policies.networks.transformer import InputMoments

STATE, SIDE, ROWS, COLUMNS = 5, 4, 8, 16  # px of a patch and of the frame
PIXELS = 3 * ROWS * COLUMNS
SIZES = replace(TARGET, observation_dim=STATE + PIXELS, image_dim=PIXELS, patch=SIDE, image_columns=COLUMNS)
DOWN = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)  # axes of a camera that looks down
CAMERA = MovingCamera((0, 2), (0, 1, 2), (0.0, 0.0, 0.0), DOWN, 90.0, 0.0)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained policy that reads eight patches."""
    folder = tmp_path_factory.mktemp("patches")
    torch.manual_seed(0)
    moments = InputMoments(torch.zeros(STATE), torch.ones(STATE), torch.zeros(G), torch.ones(G))
    network = TokenNetwork(SIZES, moments)
    with torch.no_grad():
        network.code_out.weight *= 5.0
    save_codec(folder, CODEC)
    save_tokens(folder, "target", network.eval(), {})
    return folder / "target"


def cached(path: Path, tolerance: float = 1.0, salient: float = 1e9, **other: object) -> CachedTokens:
    policy = load_cached(path.parent, path.name, tolerance, salient, **other)  # type: ignore[arg-type]
    assert isinstance(policy, CachedTokens)
    return policy


def picture(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (ROWS, COLUMNS, 3)).astype(np.float32)


def seen(
    image: np.ndarray, hand: tuple[float, ...] = (0.0, 0.0, 1.0), goal: float = 0.0, episode: object = "arm"
) -> Observations:
    state = np.zeros((1, H, STATE), dtype=np.float32)
    state[..., :3] = hand
    shown = np.broadcast_to(image.ravel(), (1, H, PIXELS)).astype(np.float32)
    features, goals = {"observation": state, "image_features": shown}, {"goal": np.full((1, G), goal, "f")}
    return Observations(features, goals, episodes=() if episode is None else (episode,))


def logits(policy: Policy, observations: Observations) -> np.ndarray:
    assert isinstance(policy, TokenPolicy)
    return policy.begin(observations).logits


def computed(policy: CachedTokens, observations: Observations) -> int:
    before = policy.layers.computed
    policy.begin(observations)
    return policy.layers.computed - before


def test_backends_read_patches_alike(path: Path) -> None:
    one, other = (logits(load_policy(path, name), seen(picture())) for name in ("onnxruntime", "torch"))
    np.testing.assert_allclose(one, other, atol=1e-4)
    changed = logits(load_policy(path, "onnxruntime"), seen(picture(1)))
    assert np.abs(changed - one).max() > 1e-2


def test_the_network_is_trained_on_what_it_reads(path: Path) -> None:
    read, codes = load_tokens(path), np.random.default_rng(0).integers(CODEC.codebook_size, size=(1, 6))
    here, network = seen(picture()), load_network(read)
    window = torch.from_numpy(here.features["observation"])
    pixels = torch.from_numpy(here.features["image_features"][:, -1])
    with torch.no_grad():
        trained, _ = network.logits(window, torch.zeros(1, G), torch.from_numpy(codes), pixels)
    acting = load_policy(path, "onnxruntime")
    assert isinstance(acting, TokenPolicy)
    np.testing.assert_allclose(acting.begin(here, codes[:, :-1]).logits, trained.numpy(), atol=1e-4)
    assert (read.sizes.grid, read.sizes.context) == ((2, 4), 8 + 1 + H)


def test_half_the_digits_are_enough(path: Path, tmp_path: Path) -> None:
    shutil.copytree(path.parent, tmp_path, dirs_exist_ok=True)
    save_tokens(tmp_path, "half", load_network(load_tokens(path)), {}, half=True)
    assert not (tmp_path / "half.onnx").exists()
    whole = logits(load_policy(path, "onnxruntime"), seen(picture()))
    ways = load_policy(tmp_path / "half", "onnxruntime"), load_policy(tmp_path / "half", "torch")
    for policy in (*ways, cached(tmp_path / "half")):
        np.testing.assert_allclose(logits(policy, seen(picture())), whole, atol=0.02 * np.ptp(whole))


def test_without_reuse_it_is_the_plain_policy(path: Path) -> None:
    plain, policy = load_policy(path, "onnxruntime"), cached(path, tolerance=0.0, salient=0.0)
    draws = np.random.default_rng(0).random((1, CODEC.codebooks))
    for seed in range(3):
        here = seen(picture(seed))
        np.testing.assert_allclose(logits(policy, here), logits(plain, here), atol=1e-4)
        ours, theirs = (each.propose(here, draws).distribution for each in (policy, plain))
        assert isinstance(ours, TokenDistribution)
        assert isinstance(theirs, TokenDistribution)
        np.testing.assert_array_equal(ours.codes, theirs.codes)
        judged = policy.judge(here, ours.codes).distribution
        assert isinstance(judged, TokenDistribution)
        np.testing.assert_allclose(judged.probabilities, ours.probabilities, atol=1e-4)


@pytest.mark.parametrize("level", [0.0, 255.0])
def test_it_sees_again_after_a_black_or_white_frame(path: Path, level: float) -> None:
    plain = load_policy(path, "onnxruntime")
    policy = cached(path, tolerance=8.0, adaptive=False)
    for image in (picture(), np.full((ROWS, COLUMNS, 3), level, np.float32), picture(), picture(1)):
        np.testing.assert_allclose(logits(policy, seen(image)), logits(plain, seen(image)), atol=1e-4)


def test_nothing_of_another_robot_or_episode_is_reused(path: Path) -> None:
    policy, whole = cached(path, tolerance=1e9, adaptive=False), 8 * SIZES.layers
    policy.begin(seen(picture()))
    for episode in (("other", 1), ("other", 2), None, None):
        assert computed(policy, seen(picture(), episode=episode)) == whole
    assert computed(policy, seen(picture(1))) == 0


def test_as_many_episodes_are_kept_as_memory_allows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adahi_lab.papers.vln_cache.patch_cache.KEPT_MOST", 2)
    policy = cached(path, adaptive=False)
    for episode in (1, 2, 1, 3):
        policy.begin(seen(picture(), episode=episode))
    assert [computed(policy, seen(picture(), episode=episode)) > 0 for episode in (1, 3, 2)] == [0, 0, 1]


def test_a_changed_patch_is_computed_in_every_layer(path: Path) -> None:
    policy, image = cached(path, adaptive=False), picture()
    policy.begin(seen(image))
    image[:SIDE, :SIDE] = 255.0 - image[:SIDE, :SIDE]
    assert computed(policy, seen(image)) == SIZES.layers
    assert computed(policy, seen(image)) == 0


def test_what_the_instruction_attends_to_is_computed(path: Path) -> None:
    policy = cached(path, salient=1.0, adaptive=False)
    policy.begin(seen(picture()))
    share = policy._kept["arm"].attention.mean(axis=0)
    watched = int((share > share.mean()).sum())
    assert 0 < watched < 8
    assert computed(policy, seen(picture())) == watched * SIZES.layers


def shifted(patches: int) -> np.ndarray:
    """What two cameras see after the left one has moved right by so many patches."""
    image = picture()
    left = np.concatenate([image[:, patches * SIDE : 2 * SIDE], picture(1)[:, : patches * SIDE]], axis=1)
    return np.concatenate([left, image[:, 2 * SIDE :]], axis=1)


def test_patches_move_with_the_camera(path: Path) -> None:
    # At a height of 1 m its picture of 8 px shows 2 m, so a patch of 4 px is 1 m.
    aligned, still = cached(path, adaptive=False, camera=vars(CAMERA)), cached(path, adaptive=False)
    for policy in (aligned, still):
        policy.begin(seen(picture()))
    moved = seen(shifted(1), hand=(1.0, 0.0, 1.0))
    assert computed(aligned, moved) == 2 * SIZES.layers  # those that came into view
    assert computed(still, moved) == 4 * SIZES.layers
    assert CAMERA.source(np.array([0, 0, 2.0]), np.array([0, 0, 1.0]), 2, SIDE)[0, 0].tolist() == [0.0, 0.0]


def test_robots_in_a_batch_have_their_own_pictures(path: Path) -> None:
    policy = cached(path, adaptive=False)
    one, other = seen(picture(0), episode="one"), seen(picture(1), goal=1.0, episode="other")
    together = Observations(
        {name: np.concatenate([one.features[name], other.features[name]]) for name in one.features},
        {"goal": np.concatenate([one.conditions["goal"], other.conditions["goal"]])},
        episodes=("one", "other"),
    )
    policy.begin(together)
    assert computed(policy, together) == 0
    policy.forget()
    assert computed(policy, one) == 8 * SIZES.layers


def test_a_file_describes_such_a_policy(path: Path, tmp_path: Path) -> None:
    camera: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value for name, value in vars(CAMERA).items()
    }
    described = {
        "kind": "cached",
        "checkpoint": str(path),
        "tolerance": 5.0,
        "salient": 2.0,
        "camera": camera,
    }
    (tmp_path / "target.yaml").write_text(yaml.safe_dump(described))
    assert isinstance(load_policy(tmp_path / "target", "onnxruntime"), CachedTokens)
    camera["field_deg"] = 200.0
    (tmp_path / "target.yaml").write_text(yaml.safe_dump(described))
    with pytest.raises(CheckpointError, match=r"field_deg: 200.0, must be above 0 and below 180"):
        load_policy(tmp_path / "target", "onnxruntime")


def test_wrong_arguments_are_named(path: Path, pair: Path) -> None:
    read = load_tokens(pair / "target")
    with pytest.raises(ValueError, match="must read patches"):
        CachedTokens(read, read.on_onnx(), 1.0, 1.0)
    assert type(load_cached(pair, "target")) is TokenPolicy  # as it is
    with pytest.raises(ValueError, match=r"tolerance, salient: -1\.0"):
        cached(path, tolerance=-1.0)
    with pytest.raises(ValueError, match="columns"):
        cached(path, camera={**vars(CAMERA), "columns": (0, 9)})


@pytest.mark.parametrize(
    ("change", "message"),
    [({"image_columns": 6}, "image_columns"), ({"image_dim": 100}, "image_dim")],
)
def test_sizes_of_patches_must_fit(change: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(SIZES, **change).shapes()


def test_the_recipe_of_the_pair_that_sees_is_complete() -> None:
    recipe = load_recipe(asset("config/recipes/metaworld-seen.yaml"))
    assert recipe.policies["target"].size["patch"] == 16
