from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from adahi_lab.encoders import encoder_export as export
from adahi_lab.encoders.encoder_export import make_network, save_encoder
from adahi_lab.encoders.resnet import load_weights
from adahi_lab.training.encoder_training import train_encoder
from adahi_lab.training.fitting import FitConfig, Run
from adahi_lab.training.recipes import DemonstrationRecipe, EncoderRecipe, load_encoder_recipe
from adahi_ros.core.assets import asset
from adahi_ros.vision.encoder import Encoder

SIZE = [24, 32]


def config(architecture: str) -> dict[str, object]:
    return {"architecture": architecture, "image_size": SIZE}


def frames(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, *SIZE, 3), dtype=np.uint8)


def spots(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Frames with one bright spot, and where it is, in pixels."""
    random = np.random.default_rng(0)
    places = random.uniform([3, 3], [SIZE[0] - 4, SIZE[1] - 4], (count, 2))
    rows, columns = np.mgrid[: SIZE[0], : SIZE[1]]
    away = np.hypot(rows - places[:, 0, None, None], columns - places[:, 1, None, None])
    bright = (255 * np.clip(3.0 - away, 0.0, 1.0)).astype(np.uint8)
    return np.repeat(bright[..., None], 3, axis=-1), places.astype(np.float32)


def test_normalised_maps_are_exported_as_they_are_at_any_scale(tmp_path: Path) -> None:
    settings = {**config("keypoints"), "normalised": True}
    torch.manual_seed(0)
    network = make_network(settings).eval()
    images = frames(3)
    with torch.no_grad():
        before = network(torch.from_numpy(images)).numpy()
        list(network.parameters())[-2].mul_(100.0)  # the weights of the last convolution
        list(network.parameters())[-1].mul_(100.0)
        after = network(torch.from_numpy(images)).numpy()
    np.testing.assert_allclose(after, before, atol=0.01)
    assert np.abs(before).max() > 0.1
    save_encoder(tmp_path / "eye", network, settings, {"seed": 0})
    np.testing.assert_allclose(Encoder.load(tmp_path / "eye").encode(images), after, atol=2e-3)


def recipe(**changes: object) -> EncoderRecipe:
    usual = {
        "architecture": "keypoints",
        "size": {"channels": 8, "layers": 1, "keypoints": 2},
        "frames": DemonstrationRecipe(1, 0, 0.0),
        "seed": 0,
        "fit": FitConfig(steps=400, batch_size=32, learning_rate=1e-2),
    }
    return EncoderRecipe(**{**usual, **changes})  # type: ignore[arg-type]


def test_the_small_network_learns_places_finer_than_a_pixel() -> None:
    images, places = spots(600)
    trained = train_encoder(images, places, recipe(), Run(0))
    assert np.all(trained.errors < 0.5)
    assert trained.network.features == 4
    few = recipe(fit=FitConfig(steps=3, batch_size=8))
    first, second = (train_encoder(images[:50], places[:50], few, Run(0)) for _ in range(2))
    assert first.losses == second.losses


def test_weights_are_taken_as_they_are_where_the_recipe_does_not_train(tmp_path: Path) -> None:
    network = make_network(config("resnet18"))
    weights = {name: value.contiguous() for name, value in network.state_dict().items()}
    path = tmp_path / "imagenet.safetensors"
    save_file({**weights, "fc.weight": torch.zeros(1000, 512), "fc.bias": torch.zeros(1000)}, path)
    images, places = spots(20)
    frozen = recipe(architecture="resnet18", size={}, fit=None, weights=str(path))
    trained = train_encoder(images, places, frozen, Run(1))
    assert trained.losses == []
    for name, value in trained.network.state_dict().items():
        torch.testing.assert_close(value, weights[name])


@pytest.mark.parametrize(
    ("source", "error", "text"),
    [
        ("nowhere.safetensors", FileNotFoundError, "weights: nowhere.safetensors: no such file"),
        ("hf://only-an-owner", ValueError, "must be hf://OWNER/REPOSITORY/FILE"),
    ],
)
def test_weights_that_are_not_there_are_reported(source: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        load_weights(make_network(config("resnet18")), source)


def test_the_hub_without_its_client_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(RuntimeError, match="pip install huggingface_hub"):
        load_weights(make_network(config("resnet18")), "hf://timm/resnet18.a1_in1k/model.safetensors")


def test_weights_of_another_network_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    save_file({"conv1.weight": torch.zeros(3)}, path)
    with pytest.raises(ValueError, match=r"other\.safetensors, must be a safetensors file of this network"):
        load_weights(make_network(config("resnet18")), str(path))


RECIPE = """
architecture: keypoints
size: {channels: 16}
frames: {episodes: 3, seed: 0, action_noise: 0.1}
seed: 1
fit: {steps: 3}
"""


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("seed: 1\n", "", r"recipe\.seed: missing"),
        ("seed: 1\n", "seed: -1\n", "seed: -1, must be an integer of at least 0"),
        ("size: {channels: 16}", "size: 3", r"recipe\.size: 3, must be a mapping"),
        ("fit: {steps: 3}", "fits: 3", r"recipe\.fits: unknown"),
        ("fit: {steps: 3}", "", "fit, weights: none, must give at least one"),
        (RECIPE, "- a\n- b", "must be a mapping"),
        (RECIPE, "{", "not YAML"),
    ],
)
def test_a_fault_in_a_recipe_is_reported_by_file_and_field(
    tmp_path: Path, old: str, new: str, text: str
) -> None:
    path = tmp_path / "eye.yaml"
    path.write_text(RECIPE)
    assert load_encoder_recipe(path).fit == FitConfig(steps=3)
    path.write_text(RECIPE.replace(old, new))
    with pytest.raises(ValueError, match=rf"eye\.yaml: .*{text}"):
        load_encoder_recipe(path)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"architecture": "vit"}, "architecture: 'vit', must be one of keypoints, pixels, resnet18"),
        ({"architecture": "keypoints", "depth": 3}, "size: .*must be what 'keypoints' takes"),
        ({"architecture": "keypoints", "keypoints": 0}, r"size\.keypoints: 0, must be at least 1"),
    ],
)
def test_a_network_that_cannot_be_is_reported(values: dict[str, object], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make_network({**values, "image_size": SIZE})


def test_the_shipped_encoders_are_what_their_recipes_make() -> None:
    for path in sorted(asset("config/encoders").glob("*.yaml")):
        made = json.loads(asset(f"checkpoints/encoders/{path.stem}.json").read_text())
        wanted = load_encoder_recipe(path)
        verbs = "train encoder", "encoder train"  # the second up to 0.2
        assert made["training"]["command"] in [f"adahi {each} {path.stem}" for each in verbs]
        assert made["training"]["seed"] == wanted.seed
        assert made["training"]["steps"] == (wanted.fit.steps if wanted.fit else 0)
        assert {"architecture": wanted.architecture, **wanted.size}.items() <= made["config"].items()


def test_an_encoder_is_as_it_was_until_the_new_one_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, network = tmp_path / "eye", make_network(config("keypoints")).eval()
    before = save_encoder(path, network, config("keypoints"), {}).digest()

    def killed(*arguments: object, **options: object) -> None:
        raise InterruptedError

    network = make_network(config("keypoints")).eval()  # other weights
    with monkeypatch.context() as patch:
        patch.setattr(export, "write_onnx", killed)
        with pytest.raises(InterruptedError):
            save_encoder(path, network, config("keypoints"), {})
    assert Encoder.load(path).fingerprint == before
    files = save_encoder(path, network, config("keypoints"), {})
    assert Encoder.load(path).fingerprint == files.digest() != before
    assert {each.name for each in tmp_path.iterdir()} == {"eye.json", "eye.onnx", "eye.safetensors"}
