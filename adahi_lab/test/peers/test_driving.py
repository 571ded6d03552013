from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from adahi_lab.bench.peer_comparison import OURS, program
from adahi_lab.bench.peer_comparison import PEERS as COMPARED
from adahi_lab.peers import driving, environments
from adahi_lab.peers.environments import PEERS, EnvironmentMissingError, environment, folder
from adahi_lab.peers.observations import write_observations
from adahi_ros.core.assets import asset
from adahi_ros.core.proposal import UNITS
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy
from adahi_ros.policies.vqbet.code_policy import ActionDecoder
from adahi_ros.protocol.request import RequestError

ROOM = "adahi_lab.peers"
INSTALLED = {name: folder(name) for name in PEERS}  # before the tests get a cache of their own
JUDGE = "vla_eval_judge"  # steps a world, and answers nothing
CONNECTING_S = 0.25
PERIOD_S = 0.125  # as all durations here, a binary fraction: sums are exact


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def read(self) -> float:
        return self.now_s

    def sleep(self, duration_s: float) -> None:
        self.now_s += duration_s


class ScriptedClient(driving.Client):
    """Takes so many seconds for each request; fails, once they have passed, where they are negative."""

    failures = (ConnectionError,)

    def __init__(self, clock: Clock, durations_s: list[float]) -> None:
        self.clock = clock
        self.durations_s = list(durations_s)
        self.events: list[str] = []
        self.chunk = np.zeros((1, 2), np.float32)
        self.unreachable = 0

    def connect(self) -> None:
        self.clock.sleep(CONNECTING_S)
        self.events.append("connect")
        if self.unreachable:
            self.unreachable -= 1
            raise ConnectionError("nobody listens")

    def ask(
        self, window: np.ndarray, goal: np.ndarray, codes: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, float]:
        self.events.append(f"ask {int(window[0, 0])}")
        duration_s = self.durations_s.pop(0)
        self.clock.sleep(abs(duration_s))
        if duration_s < 0:
            raise ConnectionError("gone")
        return self.chunk, 1.5

    def rest(self, duration_s: float) -> None:
        self.clock.sleep(duration_s)

    def close(self) -> None:
        self.events.append("close")


def recorded(count: int) -> driving.Observations:
    windows = np.zeros((count, 3, 6), np.float32)
    windows[:, 0, 0] = np.arange(count)
    return driving.Observations(
        windows,
        np.zeros((count, 2), np.float32),
        np.zeros((count, 2), np.int64),
        np.full((count, 2, 4), UNITS // 4, np.uint16),
    )


def driven(
    client: ScriptedClient, calls: int, check: Callable[[np.ndarray], None] = lambda chunk: None
) -> list[driving.Call]:
    return driving.drive(client, recorded(calls), PERIOD_S, check, client.clock.read)


def test_a_late_reply_delays_the_next_call_and_no_other_is_early() -> None:
    client = ScriptedClient(Clock(), [0.0625, 0.3125, 0.0625, 0.0625])
    calls = driven(client, 4)
    assert [call.start_s for call in calls] == [0.0, 0.125, 0.4375, 0.5625]
    assert [call.ms for call in calls] == [62.5, 312.5, 62.5, 62.5]
    assert [(call.compute_ms, call.ok) for call in calls] == [(1.5, True)] * 4
    assert client.events == ["ask 0", "ask 1", "ask 2", "ask 3", "close"]


def test_a_connection_that_fails_is_a_failed_call_too() -> None:
    client = ScriptedClient(Clock(), [-0.5, 0.0625])
    client.unreachable = 2
    calls = driven(client, 4)
    assert [call.ok for call in calls] == [False, False, False, True]
    assert [call.ms for call in calls][1:] == [250.0, 250.0, 312.5]
    assert client.events[-3:] == ["connect", "ask 3", "close"]


def test_an_answer_that_is_no_action_ends_the_measurement() -> None:
    decoder = ActionDecoder(np.zeros((4, 4, 1, 2), np.float32), np.ones(2, np.float32))
    client = ScriptedClient(Clock(), [0.0625] * 2)
    assert len(driven(client, 1, decoder.range.check)) == 1
    client.chunk = np.full((1, 2), np.nan, np.float32)
    with pytest.raises(ValueError, match=re.escape("action[0]: nan")):
        driven(client, 1, decoder.range.check)


def test_what_is_no_failure_of_the_link_is_not_counted_as_one() -> None:
    client = ScriptedClient(Clock(), [])
    with pytest.raises(IndexError):
        driven(client, 1)


def test_the_first_connection_is_given_up_after_a_while() -> None:
    client = ScriptedClient(Clock(), [])
    client.unreachable = 1_000_000
    with pytest.raises(TimeoutError, match="nobody listens"):
        driving.connect_first(client, client.clock.read, client.clock.sleep)
    assert driving.FIRST_CONNECTION_S < client.clock.now_s < driving.FIRST_CONNECTION_S + 1.0


def test_observations_that_are_not_there_are_named(tmp_path: Path) -> None:
    path = tmp_path / "windows.safetensors"
    with pytest.raises(ValueError, match=r"observations: .*windows\.safetensors"):
        driving.Observations.load(path, 1)
    recorded(5).save(path)
    with pytest.raises(ValueError, match="calls: 6, must be at most 5"):
        driving.Observations.load(path, 6)


def test_a_peers_server_verifies_the_drafts_that_it_is_sent(observations: Path) -> None:
    target = load_policy(asset("checkpoints/ball") / "target", "onnxruntime")
    verifier = driving.DraftVerifier(target)
    steps = list(zip(*vars(driving.Observations.load(observations, 10)).values(), strict=True))
    verdicts = [verifier.verify(*step) for step in steps * 5]
    assert {verdict.accepted.shape for verdict in verdicts} == {(1, len(steps[0][2]))}
    assert 0.0 < np.mean([verdict.accepted for verdict in verdicts]) < 1.0
    target.check(np.concatenate([verdict.actions for verdict in verdicts]))
    window, goal, codes, counts = steps[0]
    with pytest.raises(RequestError, match=re.escape("codes[0]: 99")):
        verifier.verify(window, goal, np.array([99, 0]), counts)
    with pytest.raises(RequestError, match="draft_probabilities: rows sum to"):
        verifier.verify(window, goal, codes, counts // 2)


def test_the_check_of_an_action_is_part_of_the_call() -> None:
    client = ScriptedClient(Clock(), [0.0625])
    calls = driven(client, 1, lambda chunk: client.clock.sleep(0.5))
    assert [call.ms for call in calls] == [562.5]


def test_what_was_driven_is_written(
    tmp_path: Path, observations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Prompt(driving.Client):
        failures = (ConnectionError,)

        def __init__(self, address: str, port: int, timeout_s: float, policy: Policy) -> None:
            assert (address, port, timeout_s) == ("10.0.0.1", 80, 0.5)
            self._verifier = driving.DraftVerifier(policy)

        def connect(self) -> None: ...

        def ask(
            self, window: np.ndarray, goal: np.ndarray, codes: np.ndarray, counts: np.ndarray
        ) -> tuple[np.ndarray, float]:
            return self._verifier.verify(window, goal, codes, counts).actions[0], 0.25

        def rest(self, duration_s: float) -> None: ...

        def close(self) -> None: ...

    out = tmp_path / "calls.json"
    arguments = ["peer", "drive", "--address", "10.0.0.1", "--port", "80", "--timeout_s", "0.5"]
    arguments += [
        "--checkpoint",
        str(asset("checkpoints/ball") / "draft"),
        "--observations",
        str(observations),
    ]
    arguments += ["--calls", "3", "--period_s", "0", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as end:
        driving.peer("prompt", lambda policy: pytest.fail("no server is asked for"), Prompt)
    assert end.value.code == 0
    written = json.loads(out.read_text())
    assert written["name"] == "prompt"
    starts = [call.pop("start_s") for call in written["calls"]]
    assert starts == sorted(starts)
    assert all(call.pop("ms") >= 0.0 for call in written["calls"])
    assert written["calls"] == [{"compute_ms": 0.25, "ok": True}] * 3


@pytest.fixture(scope="module")
def observations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten steps of ball balancing."""
    path = tmp_path_factory.mktemp("observations") / "ball.safetensors"
    write_observations("ball", 10, path)
    return path


def test_every_peer_is_a_program_and_has_packages_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(COMPARED) == {OURS, *PEERS} - {JUDGE}
    assert all(find_spec(program(name)[1]) for name in COMPARED)
    assert len({folder(name) for name in PEERS}) == len(PEERS)
    before = folder("flask_json")
    monkeypatch.setitem(PEERS, "flask_json", ("flask==0.1",))
    assert folder("flask_json") != before


def test_a_peer_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="peer: 'carrier_pigeon', must be one of flask_json"):
        environment("carrier_pigeon")


def test_packages_that_cannot_be_had_are_reported_and_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PEERS, "flask_json", ("./no_such_package",))
    with pytest.raises(
        EnvironmentMissingError, match=r"flask_json: cannot install its packages .*no_such_package"
    ):
        environment("flask_json")
    assert not list(folder("flask_json").parent.glob("flask_json-*"))


def test_packages_that_do_not_work_are_reported_and_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "PIP", (sys.executable, "-c", "pass"))
    monkeypatch.setenv("PYTHONPATH", "")
    with pytest.raises(EnvironmentMissingError, match=r"packages do not work here .*No module named"):
        environment("openpi_websocket")
    assert not list(folder("openpi_websocket").parent.glob("openpi_websocket-*"))


@pytest.mark.parametrize("name", [name for name in PEERS if name != JUDGE])
def test_a_peer_answers_every_question(name: str, observations: Path, tmp_path: Path) -> None:
    packages = INSTALLED[name]
    if not packages.is_dir():
        pytest.skip(f"not installed; 'python -m {ROOM}.environments {name}' does")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = environments.variables(packages)
    command = [sys.executable, *program(name)]
    place = ["--address", "127.0.0.1", "--port", str(port)]
    policies = asset("checkpoints/ball")
    out = tmp_path / "calls.json"
    server = subprocess.Popen(
        [*command, "serve", *place, "--checkpoint", str(policies / "target")],
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        words = ["--observations", str(observations), "--calls", "10", "--period_s", "0", "--out", str(out)]
        words += ["--checkpoint", str(policies / "draft"), "--timeout_s", "20"]
        subprocess.run([*command, "drive", *place, *words], env=env, check=True)
    finally:
        server.terminate()
        server.wait()
    written = json.loads(out.read_text())
    assert written["name"] == name
    assert [call["ok"] for call in written["calls"]] == [True] * 10
    assert all(0.0 < call["compute_ms"] < call["ms"] for call in written["calls"])
