# SPDX-License-Identifier: Apache-2.0
"""ResNet-18 (He et al., 2016) with torchvision's names for its weights, and without torchvision.

Weights trained on ImageNet come from a local safetensors file, or from the Hugging Face hub where its
client is installed and there is internet.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from adahi_lab.encoders.resnet_layers import BLOCKS, resnet_layers
from adahi_ros.core.files import LARGEST_WEIGHTS, check_size
from adahi_ros.core.tensor_files import UNREADABLE

HUB = "hf://"
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_SCALE = (0.229, 0.224, 0.225)
LAYERS = ("conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4")
CLASSIFIER = ("fc.weight", "fc.bias")  # the features are its inputs


class ResNet18(nn.Module):
    """Frames (B, H, W, 3) uint8 to the inputs of ResNet-18's classifier, (B, 512).

    Args:
        image_size: rows and columns, of any size.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, image_size: tuple[int, int]) -> None:
        super().__init__()
        self.features = 512
        for name, layer in zip(LAYERS, resnet_layers(BLOCKS["resnet18"], nn.BatchNorm2d), strict=True):
            self.add_module(name, layer)
        self.register_buffer("mean", torch.tensor(IMAGENET_MEAN)[:, None, None], persistent=False)
        self.register_buffer("scale", torch.tensor(IMAGENET_SCALE)[:, None, None], persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        maps = (images.permute(0, 3, 1, 2).float() / 255.0 - self.mean) / self.scale
        for name in LAYERS:
            maps = self.get_submodule(name)(maps)
        return maps.mean(dim=(2, 3))


def load_weights(network: nn.Module, source: str) -> None:
    """Fill a network with the weights of a safetensors file; a ResNet's classifier is left out.

    Args:
        network: takes the weights by their names.
        source: a path, or hf://OWNER/REPOSITORY/FILE of the Hugging Face hub.

    Raises:
        FileNotFoundError: no such file.
        ValueError: the file is not of this network; the message has the reason.
        RuntimeError: the hub is not available.
    """
    path = _from_hub(source) if source.startswith(HUB) else Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"weights: {source}: no such file")
    try:
        check_size(path, LARGEST_WEIGHTS)
        tensors = load_file(path)
        network.load_state_dict({name: value for name, value in tensors.items() if name not in CLASSIFIER})
    except UNREADABLE as error:
        fault = " ".join(str(error).split())
        raise ValueError(f"weights: {source}, must be a safetensors file of this network ({fault})") from None


def _from_hub(source: str) -> Path:
    owner, _, rest = source.removeprefix(HUB).partition("/")
    repository, _, name = rest.partition("/")
    if not (owner and repository and name):
        raise ValueError(f"weights: {source}, must be {HUB}OWNER/REPOSITORY/FILE")
    try:
        hub = import_module("huggingface_hub")
    except ImportError:
        raise RuntimeError(
            f"weights: {source}: needs 'pip install huggingface_hub', or a local file in its place"
        ) from None
    try:
        return Path(hub.hf_hub_download(f"{owner}/{repository}", name))
    except (OSError, ValueError) as error:  # base classes of the hub's errors
        fault = " ".join(str(error).split())
        raise RuntimeError(
            f"weights: {source}: the hub did not give it ({fault}); use a local file"
        ) from None
