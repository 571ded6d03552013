"""Which samples go with a step, and that they are those of the robot's node, to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_lab.datasets import bag_dataset as dataset_module
from adahi_lab.datasets.alignment import aligned
from adahi_lab.datasets.bag_dataset import read_dataset
from adahi_lab.evaluation.plain_contract import with_camera
from adahi_ros.bags.bag_writer import BagWriter
from adahi_ros.bags.recorded_topics import topics_of
from adahi_ros.contract.assembler import ObservationAssembler
from adahi_ros.contract.contract import Alignment
from adahi_ros.contract.parsing import parse_contract

SECOND_NS = 1_000_000_000

times = st.lists(st.integers(0, 50), min_size=0, max_size=12).map(sorted)


@given(times, st.lists(st.integers(0, 50), max_size=12), st.integers(0, 9))
def test_samples_are_aligned_as_a_search_through_all_would(
    samples: list[int], steps: list[int], tolerance: int
) -> None:
    at, stamps = np.array(samples, dtype=np.int64), np.array(steps, dtype=np.int64)
    for strategy in ("asof", "hold", "drop"):
        found = aligned(at, stamps, Alignment(strategy, "header", tolerance / SECOND_NS))
        for index, stamp in zip(found.tolist(), steps, strict=True):
            near = [t for t in samples if abs(stamp - t) <= tolerance and (strategy == "asof" or t <= stamp)]
            if near:
                best = min(abs(stamp - t) for t in near)
                assert abs(stamp - samples[index]) == best
            else:
                assert index == -1


def features(images: np.ndarray) -> np.ndarray:
    """Stand in for an encoder: means of the corners."""
    return images[:, :4, :4].reshape(len(images), 4, -1).mean(axis=2).astype(np.float32)


@pytest.mark.parametrize("camera", ["", "robot", "target"])
def test_what_the_robots_node_makes_of_the_messages_is_what_the_bag_gives(
    camera: str, contract_values: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages of rclpy, once as they are and once through a bag: the same bits, whoever sees the images."""
    rclpy = pytest.importorskip("rclpy")
    from rclpy.serialization import serialize_message

    from adahi_lab.nodes.task_state import to_task_state
    from adahi_ros.nodes.common.messages import to_image, to_joint_state
    from test.commands import trajectory

    assert rclpy
    seeing = with_camera(contract_values, "stub", 8, 8, for_target=camera == "target")
    contract = parse_contract(seeing if camera else contract_values)
    encode = features if camera else None
    monkeypatch.setattr(dataset_module, "encoder_of", lambda contract: encode)
    draw, live = np.random.default_rng(3), ObservationAssembler(contract, encode)
    writer = BagWriter(tmp_path / "live")
    for topic, kind in topics_of(contract).items():
        writer.add(f"/{topic}", kind)
    expected, shown = [], []
    for step in range(25):
        stamp = SECOND_NS + step * 50_000_000
        messages = {
            "joint_states": to_joint_state(
                ("right_joint", "grip", "left_joint"), draw.normal(size=3), draw.normal(size=3), stamp
            ),
            "task_state": to_task_state(draw.normal(size=4), np.array([0.1, 0.2]), 0, step, stamp),
            "command": trajectory(("right_joint", "left_joint"), draw.normal(size=2), stamp),
        }
        if camera:
            pixels = draw.integers(256, size=(20, 30, 3), dtype=np.uint8)
            messages["camera/image_raw"] = to_image(pixels, stamp)
        order = draw.permutation(list(messages)).tolist()
        for number, topic in enumerate(order):
            received = stamp + 1000 * number
            if topic != "command":
                observation = live.add(topic, messages[topic], received)
                if observation is not None:
                    expected.append(observation.values)
                    shown.append(observation.image_features)
            writer.write(f"/{topic}", serialize_message(messages[topic]), received)
    writer.close()
    found = read_dataset([tmp_path / "live"], contract).trajectories
    assert len(expected) == 25
    assert found.observations.tobytes() == np.stack(expected).tobytes()
    assert found.observations.shape == (25, 2 + 4)
    assert found.image_features.tobytes() == np.stack(shown).tobytes()
    assert found.image_features.shape == (25, 4 if camera == "target" else 0)
