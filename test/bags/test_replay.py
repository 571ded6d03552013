from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adahi_ros.assets import CHECKPOINTS, named
from adahi_ros.bags.dataset import read_dataset
from adahi_ros.bags.replay import REPLAYED, Replay, draft_of, load_pair, node_settings, replay
from adahi_ros.contract.contract import Contract
from adahi_ros.evaluation import latency
from adahi_ros.evaluation.bench import Bench, Policies
from adahi_ros.evaluation.calibrate import calibrate_recorded
from adahi_ros.evaluation.evaluate import Comparison, expert_error
from adahi_ros.evaluation.methods import METHODS
from adahi_ros.evaluation.metrics import transmission_rate
from adahi_ros.evaluation.recorded import RecordedWorld
from adahi_ros.gates.parameter_file import Calibration
from adahi_ros.reporting.bag_tables import replay_table
from adahi_ros.reporting.replay_figure import draw_replay
from adahi_ros.trajectories import Trajectories
from adahi_ros.wireless.link.profile import LinkProfile

LINK = LinkProfile(rtt_mean_ms=20.0, rtt_jitter_ms=0.0, rate_mbit_s=1000.0)


@pytest.fixture(scope="module")
def data(bag: Path, contract: Contract) -> Trajectories:
    return read_dataset([bag], contract).trajectories


@pytest.fixture(scope="module")
def found(data: Trajectories, policies: Policies, calibration: Calibration) -> Replay:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latency, "REPETITIONS", 3)
        return replay(data, policies, calibration, LINK, seed=5)


def test_errors_are_those_of_the_evaluation_on_the_same_episodes(
    found: Replay, data: Trajectories, comparison: Comparison
) -> None:
    assert list(found.figures) == list(REPLAYED)
    for name in ("adahi", "draft", "target"):
        assert found.figures[name]["mse"] == expert_error(comparison, name, data)


def test_gates_transmit_and_cost_as_they_are_meant_to(found: Replay) -> None:
    rates = {name: figures["transmission_rate"] for name, figures in found.figures.items()}
    assert (rates["hybrid"], rates["target"], rates["draft"]) == (1.0, 1.0, 0.0)
    assert 0.0 < rates["adahi"] < 1.0
    costs = found.costs
    draft_ms = found.figures["draft"]["modelled_latency_ms"]["mean"]
    hybrid_ms = found.figures["hybrid"]["modelled_latency_ms"]["mean"]
    assert draft_ms == pytest.approx(costs.draft_ms)
    transfer = LINK.transfer_ms(costs.request_bytes + costs.response_bytes)
    assert hybrid_ms == pytest.approx(costs.draft_ms + costs.target_ms + 20.0 + transfer)
    spent = found.figures["adahi"]["modelled_latency_ms"]["mean"]
    assert spent == pytest.approx(draft_ms + rates["adahi"] * (hybrid_ms - draft_ms))
    json.dumps(found.figures, allow_nan=False)


def test_a_replay_repeats(
    found: Replay, data: Trajectories, policies: Policies, calibration: Calibration
) -> None:
    again = replay(data, policies, calibration, LINK, seed=5)
    for name, log in found.logs.items():
        assert log.action.tobytes() == again.logs[name].action.tobytes()
        assert np.array_equal(log.transmitted, again.logs[name].transmitted)


def test_it_is_shown(found: Replay, tmp_path: Path) -> None:
    draw_replay(found, 20.0, "test", tmp_path / "new/replay.png")
    assert (tmp_path / "new/replay.png").read_bytes().startswith(b"\x89PNG")
    assert replay_table(found, "title").row_count == len(REPLAYED)


def test_a_calibration_on_recorded_episodes_reaches_its_rate_there(
    data: Trajectories, policies: Policies
) -> None:
    made = calibrate_recorded(policies, data, 0.4, seed=0, smoothing=0.5, normalization="std")
    assert made.task == "toy"
    assert made.figures["episodes"] == 12
    for method in ("adahi", "uncertainty", "random"):
        bench = Bench("toy", policies, made)
        log = METHODS[method].run(bench, RecordedWorld(data), 0, range(12), lambda step: None)
        assert transmission_rate(log.transmitted, log.active) == pytest.approx(0.4, abs=0.05), method
    assert calibrate_recorded(policies, data, 0.4, 0, 0.5, "std") == made


def test_a_wrong_rate_is_told(data: Trajectories, policies: Policies) -> None:
    with pytest.raises(ValueError, match=r"rate: 1.5, must be between 0 and 1"):
        calibrate_recorded(policies, data, 1.5, seed=0)


def test_a_pair_is_loaded_by_its_draft(checkpoints: Path, calibration: Calibration) -> None:
    pair = load_pair(checkpoints / "draft", None, "torch")
    assert (pair.draft.digest, pair.target.digest) == (calibration.draft, calibration.target)
    same = load_pair(checkpoints / "draft", checkpoints / "draft", "torch")
    assert same.target.digest == calibration.draft
    assert load_pair(named("ball/draft", CHECKPOINTS), None, "onnxruntime").draft.signature.action_dim == 2
    with pytest.raises(ValueError, match=r"^no/draft.json: no such checkpoint"):
        load_pair(Path("no/draft"), None, "torch")


def test_a_name_in_a_parameter_file_is_the_nodes_policy(
    calibration: Calibration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ball").mkdir()
    (tmp_path / "ball/draft.json").write_text("{}")
    monkeypatch.chdir(tmp_path)  # what lies here is another's
    for name, path in (("ball/draft", named("ball/draft", CHECKPOINTS)), ("/a/draft", Path("/a/draft"))):
        calibration.save(tmp_path / "params.yaml", "deviation", "by hand", {"checkpoint": name})
        assert draft_of(tmp_path / "params.yaml") == path
    calibration.save(tmp_path / "params.yaml", "deviation", "by hand")
    with pytest.raises(ValueError, match=r"params.yaml: checkpoint: None, must be FOLDER/NAME"):
        draft_of(tmp_path / "params.yaml")


def test_what_a_parameter_file_sets_is_read(calibration: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    replace(calibration, task="toy").save(path, "deviation", "by hand", {"contract": "toy.yaml"})
    assert node_settings(path)["contract"] == "toy.yaml"
    for damaged in ("{", "[]", "/**: {}", "/**: {ros__parameters: 5}", "\udc80"):
        path.write_text(damaged, errors="surrogateescape")
        with pytest.raises(ValueError, match=str(path)):
            node_settings(path)
