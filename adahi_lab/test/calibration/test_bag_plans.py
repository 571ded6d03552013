"""A target is asked once at the steps of bags, and reads what it would have read of the robot."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adahi_lab.calibration.bag_plans import plan_bags
from adahi_lab.calibration.target_inputs import Jpeg, Query
from adahi_lab.calibration.target_plans import Planned
from adahi_lab.datasets.bag_dataset import BagDataset, read_dataset
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.contract.assembler import ObservationAssembler
from adahi_ros.contract.contract import BY_CONTRACT, Contract
from adahi_ros.contract.fields import InputError
from adahi_ros.contract.parsing import parse_contract
from adahi_ros.core.proposal import ActionRange
from adahi_ros.core.signature import Observations
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.gates.interface import LinkEstimate
from adahi_ros.policies.absent import AbsentPolicy
from adahi_ros.policies.interface import TargetUnavailableError
from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.request import Request, SentParts
from adahi_ros.protocol.window import SentWindows
from adahi_ros.robot.controller import Controller
from adahi_ros.robot.loop import ControlLoop
from adahi_ros.robot.outcomes import Check, Fallback, Outcome
from adahi_ros.robot.session import VerifierState
from adahi_ros.robot.target_view import VIEWS, view_of_contract
from adahi_ros.server.engine import Engine
from adahi_ros.server.verifier import TargetVerifier
from test.bags.conftest import Line
from test.bags.seeing import Seeing, messages, seeing_values
from test.robot.conftest import Commands

INSTRUCTION = "stack the blocks"
QUALITY = 70


@pytest.fixture(scope="module")
def contract(contract_values: dict[str, Any]) -> Contract:
    return parse_contract(seeing_values(contract_values))


@pytest.fixture(scope="module")
def bags(in_bag: Callable[..., Path]) -> list[Path]:
    return [in_bag(messages(seed)) for seed in (3, 4)]


@pytest.fixture
def dataset(bags: list[Path], contract: Contract) -> BagDataset:
    return read_dataset(bags, contract, instruction="")


@pytest.fixture
def query(bags: list[Path], contract: Contract) -> Query:
    return Query(bags, contract, "", "seeing.yaml", {"target": "a"}, jpeg=Jpeg(QUALITY))


class LiveSession:
    """Asks an engine as over the air, and replies when the test says so."""

    def __init__(self, policy: Seeing) -> None:
        self.link, self.trouble, self.target = VerifierState.READY, "", policy.signature
        self.busy_until_s, self.rtt_ms, self.sent_parts = 0.0, float("nan"), SentParts(True, True)
        self._engine, self._windows = Engine(TargetVerifier(policy, "replace"), 0), SentWindows()
        self._waiting: Any = None

    def estimate(self, now_s: float) -> LinkEstimate:
        return LinkEstimate()

    def accept_only(self, check: Check) -> None:
        pass

    def submit(self, request: Request, deadline_s: float, now_s: float, ended: Any) -> object:
        self._waiting = request, ended
        return None

    def reply(self) -> None:
        if self._waiting is None:
            return
        (request, ended), self._waiting = self._waiting, None
        sent = replace(request, window=self._windows.update(request.window), robot_id="robot")
        reply = self._engine.verify(sent, 0.0)
        self._windows.replied(request.window, reply.window_kept)
        actions = np.asarray(reply.actions).reshape(1, -1, self.target.action_dim)
        ended(Outcome(Verdict(actions, np.array([reply.accepted], bool)), Reason.NONE))


def read_live(lines: list[Line], contract: Contract) -> list[Observations]:
    """Return what the target reads of a robot that hears these messages and asks at every step."""
    policy = Seeing(Path())
    session = LiveSession(policy)
    seen = view_of_contract(BY_CONTRACT, contract.images_for_target, bool(contract.encoder))
    view = VIEWS[seen](contract.number_dim, QUALITY, 0)
    own = AbsentPolicy(contract.number_dim, contract.goal_dim, contract.action.size)
    loop = ControlLoop(
        Controller(own, ControllerConfig(ThresholdedGate("always")), "plan", own),
        session,  # type: ignore[arg-type]
        view,
        "robot",
        0,
        1.0,
        Commands(),
        lambda record: None,
        Fallback(None),
        lambda: 0.0,
    )
    assembler = ObservationAssembler(contract)
    for line in lines:
        if line.topic == "instruction":
            loop.tell(line.message.data)
        elif line.topic in contract.channels:
            try:
                observation = assembler.add(line.topic, line.message, line.received_ns)
                if observation is not None:
                    loop.step(observation)
                    session.reply()
            except InputError:
                pass
    return policy.read


def test_a_target_reads_of_a_bag_what_it_reads_of_the_robot_to_the_bit(
    dataset: BagDataset, query: Query, contract: Contract, tmp_path: Path
) -> None:
    policy = Seeing(Path())
    planned = plan_bags(policy, dataset, query, tmp_path)
    live = [*read_live(messages(3), contract), *read_live(messages(4), contract)]
    steps = 2 * (4 * 9 - 2 - 1)  # untold in the beginning, and one without its picture
    assert len(live) == len(policy.read) == len(planned.plans) == steps
    assert {given for one in live for given in one.instructions} == {INSTRUCTION, "open the drawer"}
    for ours, theirs in zip(policy.read, live, strict=True):
        assert ours.instructions == theirs.instructions
        for kind in ("features", "conditions", "images"):
            mine, his = getattr(ours, kind), getattr(theirs, kind)
            assert mine.keys() == his.keys()
            for name, values in his.items():
                assert values.dtype == mine[name].dtype
                assert values.shape == mine[name].shape
                assert values.tobytes() == mine[name].tobytes()
    assert {one.images["observation.images.wrist"].shape for one in live} == {(1, 3, 12, 12, 3)}


def test_another_instruction_ends_an_episode_steps_without_are_left_out(
    dataset: BagDataset, bags: list[Path], contract: Contract
) -> None:
    lengths = np.diff(dataset.trajectories.ends, prepend=0).tolist()
    assert lengths == 2 * [7, 8, 4, 5, 9]
    assert dataset.instructions[:19] == (INSTRUCTION,) * 19
    plain = read_dataset(bags, contract)
    assert np.diff(plain.trajectories.ends, prepend=0).tolist() == 2 * [9, 8, 9, 9]
    assert plain.instructions == ()
    given = read_dataset(bags, contract, instruction="wave")
    assert given.instructions[:2] == ("wave",) * 2
    assert np.diff(given.trajectories.ends, prepend=0).tolist() == 2 * [2, 7, 8, 4, 5, 9]


@pytest.mark.parametrize("batch", [1, 5, 16])
def test_a_run_that_was_stopped_goes_on_where_it_was(
    batch: int, dataset: BagDataset, query: Query, tmp_path: Path
) -> None:
    whole = plan_bags(Seeing(Path()), dataset, replace(query, batch=batch), tmp_path / "whole")
    given: list[int] = []
    stopped = Seeing(Path(), fails_after=40)
    with pytest.raises(TargetUnavailableError, match="dropped the connection"):
        plan_bags(stopped, dataset, replace(query, batch=batch), tmp_path / "parts", given.append)
    assert sum(given) == len(stopped.read) == 40 // batch * batch
    rest = Seeing(Path())
    planned = plan_bags(rest, dataset, replace(query, batch=batch), tmp_path / "parts", given.append)
    assert planned.plans.tobytes() == whole.plans.tobytes()
    assert len(stopped.read) + len(rest.read) == len(whole.plans)
    assert max(rest.batches) == min(batch, len(rest.read))
    again = Seeing(Path(), fails_after=0)
    assert plan_bags(again, dataset, query, tmp_path / "parts").plans.tobytes() == whole.plans.tobytes()


@pytest.mark.parametrize(
    "change",
    [
        {"origin": {"target": "b"}},
        {"jpeg": Jpeg(30)},
        {"jpeg": Jpeg(QUALITY, 2000)},
        {"origin": {"target": "a", "contract": "other"}},
    ],
)
def test_plans_for_another_question_are_not_taken(
    change: dict[str, Any], dataset: BagDataset, query: Query, tmp_path: Path
) -> None:
    plan_bags(Seeing(Path()), dataset, query, tmp_path)
    other = Seeing(Path(), gain=2.0)
    plan_bags(other, dataset, replace(query, **change), tmp_path)
    assert len(other.read) == len(dataset.stamps_ns)


def test_what_a_target_may_not_mean_is_left_out(dataset: BagDataset, query: Query, tmp_path: Path) -> None:
    policy = Seeing(Path())
    allowed = ActionRange(np.full(2, -0.5), np.full(2, 1e3))
    policy.sound, policy.check = allowed.sound, allowed.check
    planned = plan_bags(policy, dataset, query, tmp_path)
    assert 0 < planned.left_out < len(dataset.stamps_ns)
    assert len(planned.plans) == len(planned.data.observations) == len(dataset.stamps_ns) - planned.left_out
    assert planned.plans.min() >= -0.5
    allowed = ActionRange(np.full(2, 1e3), np.full(2, 1e4))
    policy.sound, policy.check = allowed.sound, allowed.check
    with pytest.raises(ValueError, match=r"^action\[0\]: .*, must be from 1000 to 1e\+04$"):
        plan_bags(policy, dataset, query, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"action_dim": 3}, "action_dim: the draft's is 2, the target's 3; must be the same"),
        ({"rate_hz": 30.0}, "rate_hz: the target's actions are for 30 Hz, the robot's steps at 20 Hz"),
        ({"history": 9}, "history: the target's is 9, must be 8 at most where it reads images"),
    ],
)
def test_a_target_that_does_not_fit_the_robot_is_refused_as_the_robot_does(
    change: dict[str, Any], message: str, dataset: BagDataset, query: Query, tmp_path: Path
) -> None:
    policy = Seeing(Path())
    policy.signature = replace(policy.signature, **change)
    with pytest.raises(ValueError, match=f"^target: seeing.yaml: {re.escape(message)}$"):
        plan_bags(policy, dataset, query, tmp_path)
    assert not policy.read


def test_actions_of_another_shape_than_the_signature_says_are_refused(
    dataset: BagDataset, query: Query, tmp_path: Path
) -> None:
    policy = Seeing(Path())
    policy.signature = replace(policy.signature, horizon=7)
    with pytest.raises(ValueError, match=r"^target: proposes actions of shape \(4, 2\), must be \(7, 2\)"):
        plan_bags(policy, dataset, query, tmp_path)


def test_damaged_plans_are_named(dataset: BagDataset, query: Query, tmp_path: Path) -> None:
    plan_bags(Seeing(Path()), dataset, query, tmp_path)
    (file,) = tmp_path.glob("planned/*/000000000.safetensors")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"000000000.safetensors: not stored plans .*delete it to plan"):
        plan_bags(Seeing(Path()), dataset, query, tmp_path)


def test_the_range_of_what_was_done_and_is_planned_is_of_both(
    dataset: BagDataset, query: Query, tmp_path: Path
) -> None:
    planned: Planned = plan_bags(Seeing(Path(), gain=10.0), dataset, query, tmp_path)
    low, high = planned.action_range
    assert (low == planned.plans.min(axis=(0, 1, 2))).all()
    assert (high == planned.plans.max(axis=(0, 1, 2))).all()
    assert planned.data.observations.shape[1] == query.contract.number_dim
