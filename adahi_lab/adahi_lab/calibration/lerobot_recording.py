# SPDX-License-Identifier: Apache-2.0
"""A LeRobotDataset through a robot's contract: the observations and actions that its bags would give.

The dataset's numbers are in the policy's units, so the contract's operators are not applied.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adahi_lab.calibration.lerobot_frames import frames
from adahi_lab.datasets.bag_dataset import BagDataset, encoder_of
from adahi_lab.datasets.dataset_rows import TASKS, read_instructions
from adahi_lab.datasets.lerobot_dataset import (
    ACTION,
    INFO,
    OBSERVATIONS,
    load_dataset,
    read_columns,
    read_info,
    width_of,
)
from adahi_lab.datasets.trajectories import Trajectories
from adahi_ros.contract.assembler import Observation
from adahi_ros.contract.contract import Contract, Source
from adahi_ros.contract.fields import NAMED, NANOSECONDS
from adahi_ros.core.signature import RATE_WITHIN
from adahi_ros.vision.images import resized

OnWarning = Callable[[str], None]
NOTHING = np.empty(0)


def is_lerobot(path: Path) -> bool:
    """Whether a path is a LeRobotDataset, of any format; a bag has no such folder."""
    return (path / INFO).parent.is_dir()


def files_of_lerobot(folder: Path) -> list[Path]:
    """Return the files of a LeRobotDataset that its steps are made of."""
    parts = ("meta/info.json", "meta/*.parquet", "meta/episodes/*/*", "data/*/*", "videos/*/*/*")
    return [path for part in parts for path in sorted(folder.glob(part)) if path.is_file()]


@dataclass(frozen=True)
class LeRobotRecording:
    """The T rows of a LeRobotDataset.

    Attributes:
        folder: of the dataset.
        contract: of the robot.
        features: of the dataset, by name.
        numbers: (T, S) float32, of the contract's observations.
        goals: (T, G) float32.
        actions: (T, A) float32.
        episodes: (T,) int64, the episode of each row.
        steps: (T,) int64, number of each row in its episode.
    """

    folder: Path
    contract: Contract
    features: dict[str, dict[str, object]]
    numbers: np.ndarray
    goals: np.ndarray
    actions: np.ndarray
    episodes: np.ndarray
    steps: np.ndarray

    @classmethod
    def read_from(
        cls, folder: Path, contract: Contract, on_warning: OnWarning = lambda line: None
    ) -> LeRobotRecording:
        """Read the numbers of a dataset.

        Args:
            folder: of the dataset.
            contract: of the robot.
            on_warning: called where the dataset names its entries unlike the contract.

        Raises:
            ImportError: pyarrow is not installed.
            FileNotFoundError: a part of the dataset is missing.
            ValueError: it is damaged, or does not fit the contract; names file, field, value and what is
                allowed.
        """
        info = read_info(folder / INFO)
        _check_rate(info, folder / INFO, contract)
        names, order = _observed(info["features"], folder / INFO, contract, on_warning)
        acted = _acted(info["features"], folder / INFO, contract, on_warning)
        with warnings.catch_warnings():  # of cameras, which `observations` reads
            warnings.simplefilter("ignore")
            data = load_dataset(folder, contract.robot_type, names)
        lengths = np.diff(data.ends, prepend=0)
        return cls(
            *(folder, contract, info["features"]),
            *(
                data.observations[:, order[: contract.number_dim]],
                data.observations[:, order[contract.number_dim :]],
            ),
            data.actions[:, acted],
            np.repeat(np.arange(len(lengths)), lengths),
            np.concatenate([np.arange(length) for length in lengths]),
        )

    def dataset(self, instruction: str | None, number: int = 0) -> BagDataset:
        """Return the steps as `read_dataset` does; another instruction or goal begins an episode.

        Args:
            instruction: of steps without one; those that then have none are left out. None for a target
                without instructions.
            number: of the dataset among all sources.

        Raises:
            ValueError: no step has an instruction, or a row is of an unknown task; names both.
        """
        texts = [""] * len(self.steps) if instruction is None else self._instructions(instruction)
        kept = np.array([instruction is None or bool(text.strip()) for text in texts])
        if not kept.any():
            raise ValueError(
                f"{self.folder}: no task has an instruction, must have one; or give --instruction"
            )
        seen: dict[str, int] = {}
        numbered = [seen.setdefault(text, len(seen)) for text in texts]
        same = np.column_stack([self.episodes, numbered, self.goals])
        starts = np.flatnonzero(np.concatenate([[True], (np.diff(same, axis=0) != 0).any(axis=1)]))
        data = Trajectories(
            *(self.contract.robot_type, self._values(), self.actions, self.goals[starts]),
            np.append(starts[1:], len(self.steps)),
        ).where(kept)
        rows = np.flatnonzero(kept)
        places = np.column_stack([np.full(len(rows), number), rows])
        chosen = () if instruction is None else tuple(texts[row] for row in rows)
        summary = {"robot_type": data.task, "bags": [{"path": str(self.folder), "steps": len(rows)}]}
        return BagDataset(data, self._stamps_ns()[rows], places, chosen, {}, summary)

    def observations(self, cameras: Collection[str] = ()) -> Iterator[Observation]:
        """Yield the observation of every row.

        Args:
            cameras: keys of those that the target reads; an encoder of the robot reads all.

        Raises:
            ImportError, FileNotFoundError, ValueError: as `frames`.
        """
        encode = None if self.contract.images_for_target else encoder_of(self.contract)
        read = [each for each in self.contract.cameras if encode is not None or each.key in cameras]
        films = [frames(self.folder, each.key, self.features, self.contract.rate_hz) for each in read]
        columns = _columns(self.contract)
        stamps_ns = self._stamps_ns()
        for row, numbers in enumerate(self.numbers):
            images = {
                each.key: resized(next(film), each.rows, each.columns)
                for each, film in zip(read, films, strict=True)
            }
            values = numbers
            if encode is not None:
                values = np.concatenate([numbers, encode(np.stack(list(images.values()))).ravel()])
            yield Observation(
                stamp_ns=int(stamps_ns[row]),
                episode=int(self.episodes[row]),
                step=int(self.steps[row]),
                values=values.astype(np.float32),
                goal=self.goals[row],
                read=NOTHING,
                images=images,
                named={key: numbers[places] for key, places in columns.items()},
            )

    def _values(self) -> np.ndarray:
        """Return the observations (T, O) of the robot, features of its encoder among them."""
        if self.contract.images_for_target or not self.contract.encoder:
            return self.numbers
        return np.stack([each.values for each in self.observations()])

    def _stamps_ns(self) -> np.ndarray:
        return np.round(np.arange(len(self.steps)) * self.contract.period_s * NANOSECONDS).astype(np.int64)

    def _instructions(self, otherwise: str) -> list[str]:
        """Return the instruction of each row."""
        tasks = read_instructions(self.folder)
        indices = read_columns(self.folder, {"task_index": 1})["task_index"][:, 0].tolist()
        for row, index in enumerate(indices):
            if index not in tasks:
                raise ValueError(
                    f"{self.folder / 'data'}: task_index: {index:g} in row {row}, must be one of {TASKS}"
                )
        return [tasks[index] if tasks[index].strip() else otherwise for index in indices]


def _columns(contract: Contract) -> dict[str, list[int]]:
    """Return the columns of each key among the S numbers."""
    found: dict[str, list[int]] = {}
    start = 0
    for source in contract.numbers:
        found.setdefault(source.key, []).extend(range(start, start + source.size))
        start += source.size
    return found


def _check_rate(info: dict[str, object], path: Path, contract: Contract) -> None:
    fps, rate = info.get("fps"), contract.rate_hz
    if isinstance(fps, bool) or not isinstance(fps, int | float) or abs(fps - rate) > RATE_WITHIN * rate:
        raise ValueError(f"{path}: fps: {fps!r:.60}, must be {rate:g}, the fps of the contract")


def _observed(
    features: dict[str, dict[str, object]], path: Path, contract: Contract, on_warning: OnWarning
) -> tuple[list[str], list[int]]:
    """Return the features to read, and the column in them of each number of an observation and a goal.

    The features have the names of the contract's keys. Or they are the state, as this package's exporter
    writes it: all numbers in the contract's order, then those of the goal.
    """
    sources = (*contract.numbers, *(() if contract.goal is None else (contract.goal,)))
    keys = list(dict.fromkeys(source.key for source in sources))
    if not all(key in features for key in keys):
        return _state(features, path, contract, keys)
    columns: dict[str, Iterator[int]] = {}
    start = 0
    for key in keys:
        wanted = [name for source in sources if source.key == key for name in _joints(source)]
        width = width_of(features, key, path)
        _check_width(width, len(wanted), f"{path}: features: {key}")
        order = _order(wanted, features[key].get("names"), f"{path}: features: {key}", on_warning)
        columns[key] = iter([start + place for place in order])
        start += width
    return keys, [next(columns[source.key]) for source in sources for _ in source.select]


def _state(
    features: dict[str, dict[str, object]], path: Path, contract: Contract, keys: list[str]
) -> tuple[list[str], list[int]]:
    names = [name for name in OBSERVATIONS if name in features]
    found = sum(width_of(features, name, path) for name in names)
    wanted = contract.number_dim + contract.goal_dim
    if found != wanted:
        raise ValueError(
            f"{path}: features: {', '.join(features)}; must have {', '.join(keys)} of the contract, or "
            f"{' and '.join(OBSERVATIONS)} of {wanted} numbers together, not {found}"
        )
    return names, list(range(found))


def _acted(
    features: dict[str, dict[str, object]], path: Path, contract: Contract, on_warning: OnWarning
) -> list[int]:
    """Return the column of each entry of the contract's action."""
    width = width_of(features, ACTION, path)
    where = f"{path}: features: {ACTION}"
    _check_width(width, contract.action.size, where)
    sinks = contract.action.sinks
    wanted = [name for sink in sinks for name in sink.joint_names or ("",) * sink.source.size]
    return _order(wanted, features[ACTION].get("names"), where, on_warning)


def _check_width(width: int, wanted: int, where: str) -> None:
    if width != wanted:
        raise ValueError(f"{where}: shape: [{width}], must be [{wanted}], as in the contract")


def _joints(source: Source) -> Sequence[str]:
    """Return the joint of each entry, empty where the messages do not name it."""
    named = source.channel.kind in NAMED
    return [path.partition(".")[2] if named else "" for path in source.select]


def _order(wanted: Sequence[str], names: object, where: str, on_warning: OnWarning) -> list[int]:
    """Return the column of each wanted joint; all in order where the names do not say it.

    LeRobot writes `names` as a list such as [gripper.pos], older versions in a mapping of one list.
    """
    if isinstance(names, dict) and len(names) == 1:
        (names,) = names.values()
    if not isinstance(names, list) or not all(wanted):
        return list(range(len(wanted)))
    joints = [str(name).removesuffix(".pos") for name in names]
    if len(set(joints)) == len(joints) and set(joints) == set(wanted):
        return [joints.index(name) for name in wanted]
    on_warning(
        f"{where}: names: {', '.join(map(str, names))[:200]}; the contract's are {', '.join(wanted)[:200]}: "
        "their order counts, check it"
    )
    return list(range(len(wanted)))
