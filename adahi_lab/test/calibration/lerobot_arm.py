"""An arm with a camera, and LeRobotDatasets of it that our exporter writes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from adahi_lab.datasets.dataset_rows import INDEX, TASKS
from adahi_lab.datasets.dataset_writer import PLACE, save_dataset
from adahi_lab.datasets.trajectories import Trajectories

STATE, ENVIRONMENT, CAMERA = "observation.state", "observation.environment_state", "observation.images.top"
RATE_HZ = 10.0
ENDS = (5, 9, 20)
FRAME = (32, 40)  # rows, columns
JOINTS = ("base", "elbow", "wrist", "gripper")
ROWS, EPISODES, INFO = f"data/{PLACE}", f"meta/episodes/{PLACE}", "meta/info.json"
ALIGN = {"strategy": "asof", "timeline": "header", "tolerance_ms": 10.0}


def topic(name: str, kind: str, *select: str) -> dict[str, Any]:
    return {"channel": {"topic": name, "type": kind}, "select": list(select), "align": dict(ALIGN)}


CONTRACT: dict[str, Any] = {
    "robot_type": "arm",
    "fps": RATE_HZ,
    "paced_by": "joint_states",
    "images_for_target": True,
    "observations": {
        STATE: topic("joint_states", "sensor_msgs/msg/JointState", *(f"position.{name}" for name in JOINTS)),
        ENVIRONMENT: topic("task_state", "adahi_msgs/msg/TaskState", "state.0:3"),
        CAMERA: {
            "channel": {"topic": "top/image_raw", "type": "sensor_msgs/msg/Image"},
            "apply": [{"resize": list(FRAME)}],
            "align": {"strategy": "hold", "tolerance_ms": 100},
        },
    },
    "actions": {
        "action": topic(
            "command", "trajectory_msgs/msg/JointTrajectory", "positions.wrist", "positions.gripper"
        )
    },
}


def contract_values(**changed: Any) -> dict[str, Any]:
    """Return the contract of the arm; it applies no operator."""
    return {**deepcopy(CONTRACT), **changed}


def recorded() -> Trajectories:
    """Return drawn episodes of the arm."""
    draw = np.random.default_rng(0)
    shapes = ((ENDS[-1], 7), (ENDS[-1], 2), (len(ENDS), 0))
    observations, actions, goals = (draw.normal(size=shape).astype(np.float32) for shape in shapes)
    return Trajectories("arm", observations, actions, goals, np.array(ENDS))


def pictures() -> np.ndarray:
    """Return smooth images (T, H, W, 3), which a video keeps."""
    shades = np.linspace(20, 230, ENDS[-1]).astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(shades[:, None, None, None], (ENDS[-1], *FRAME, 3)))


def change_table(path: Path, change: Callable[[dict[str, list[Any]]], object]) -> None:
    """Change the columns of a Parquet file."""
    import pyarrow
    import pyarrow.parquet

    columns = pyarrow.parquet.read_table(path).to_pydict()
    change(columns)
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def change_info(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the description of a dataset."""
    info = json.loads((folder / INFO).read_text())
    change(info)
    (folder / INFO).write_text(json.dumps(info))


def png(image: np.ndarray) -> dict[str, Any]:
    """Return an image as LeRobot stores it in a row."""
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG")
    return {"bytes": file.getvalue(), "path": None}


def write_dataset(folder: Path, images: np.ndarray | None = None, instruction: str = "lift it") -> Path:
    """Write a dataset of the arm, with images in its rows."""
    save_dataset(folder, recorded(), RATE_HZ, len(JOINTS), instruction)
    if images is not None:
        change_table(folder / ROWS, lambda rows: rows.update({CAMERA: [png(each) for each in images]}))
        feature = {"dtype": "image", "shape": [*FRAME, 3], "names": ["height", "width", "channels"]}
        change_info(folder, lambda info: info["features"].update({CAMERA: feature}))
    return folder


def write_tasks(folder: Path, texts: Sequence[str], indices: Sequence[int]) -> None:
    """Give a dataset these tasks, and each row one of them."""
    tasks: dict[str, list[Any]] = {"task_index": list(range(len(texts))), INDEX: list(texts)}
    change_table(folder / TASKS, lambda rows: rows.update(tasks))
    change_table(folder / ROWS, lambda rows: rows.update(task_index=list(indices)))


def film(folder: Path, images: np.ndarray) -> None:
    """Replace the camera of a dataset by videos: one of the first two episodes, one of the last."""
    import av

    files = (0, ENDS[1]), (ENDS[1], ENDS[2])
    for number, (start, end) in enumerate(files):
        path = folder / f"videos/{CAMERA}/chunk-000/file-{number:03d}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        with av.open(str(path), "w") as container:
            stream = container.add_stream("mpeg4", rate=int(RATE_HZ))
            stream.height, stream.width = FRAME
            stream.pix_fmt = "yuv420p"
            for image in images[start:end]:
                container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
            container.mux(stream.encode())
    columns: dict[str, list[Any]] = {
        f"videos/{CAMERA}/chunk_index": [0, 0, 0],
        f"videos/{CAMERA}/file_index": [0, 0, 1],
        f"videos/{CAMERA}/from_timestamp": [0.0, ENDS[0] / RATE_HZ, 0.0],
    }
    change_table(folder / EPISODES, lambda rows: rows.update(columns))
    feature = {"dtype": "video", "shape": [*FRAME, 3], "names": ["height", "width", "channels"]}
    change_info(folder, lambda info: info["features"].update({CAMERA: feature}))
