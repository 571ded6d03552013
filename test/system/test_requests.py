"""The verifier replies to every request: to a good one with actions, to a malformed one with a status."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adahi_msgs.srv import VerifyDraft

from adahi_ros.core.proposal import counted
from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.nodes.common.verifier_messages import from_reply
from adahi_ros.nodes.server.robot_messages import from_request
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_decoder
from adahi_ros.protocol.request import PROTOCOL_VERSION, RequestFault, fingerprint_number
from adahi_ros.server.engine import check_request
from adahi_ros.server.verifier import TargetVerifier, verification_uniforms
from adahi_ros.server.window_cache import WindowCache
from test.system.stage import Stage

Ask = Callable[[VerifyDraft.Request], VerifyDraft.Response]
SEED = 5


@pytest.fixture(scope="module")
def ask(stage: Stage, exported: Path) -> Iterator[Ask]:
    process = stage.start_verifier(
        exported, seed=SEED, verification__reliability="reliable", batch__quota_hz=0.0
    )
    yield stage.client(VerifyDraft, "verify_draft", qos_profile=verify_qos("reliable"))
    stage.end(process)


@pytest.fixture
def good(exported: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """The fields of a request that is right: H 3, O 6, G 2, N 2, K 8; of a robot of each test's own.

    A verifier keeps a robot's window.
    """
    draw = np.random.default_rng(1)
    return {
        "protocol": PROTOCOL_VERSION,
        "robot_id": f"robot_{zlib.crc32(request.node.name.encode())}",
        "episode_id": 3,
        "step_id": 7,
        "first_step": 7,
        "tokenizer_fingerprint": fingerprint_number(load_decoder(exported).fingerprint),
        "observation_window": draw.normal(size=18).tolist(),
        "goal": [0.1, -0.1],
        "codes": [2, 5],
        "draft_probabilities": counted(draw.dirichlet(np.ones(8), size=2)).ravel().tolist(),
    }


def changed(values: list[float], index: int, value: float) -> list[float]:
    return [*values[:index], value, *values[index + 1 :]]


def test_a_good_request_gets_the_reply_of_the_verifier_in_process(
    ask: Ask, good: dict[str, Any], exported: Path
) -> None:
    request = VerifyDraft.Request(**good)
    response = ask(request)
    assert response.status == VerifyDraft.Response.STATUS_OK
    assert (response.episode_id, response.step_id, response.first_step) == (3, 7, 7)
    policy = load_policy(exported / "target", "onnxruntime")
    sent, verifier = from_request(request), TargetVerifier(policy)
    window = WindowCache(3, 6).complete(good["robot_id"], sent.window)
    checked = check_request(
        policy.signature, verifier.acceptance, window.values, window.goal, sent.codes, sent.counts
    )
    expected = verifier.verify(checked, verification_uniforms(SEED, good["robot_id"], 3, 7, 2))
    reply = from_reply(0, response)
    assert reply.accepted == expected.accepted[0].tolist()
    np.testing.assert_array_equal(reply.actions, expected.actions.ravel())


@pytest.mark.parametrize(
    ("fault", "field", "change"),
    [
        ("PROTOCOL_MISMATCH", "protocol", lambda old: old - 1),
        ("UNKNOWN_TARGET", "target", lambda old: "kitchen/target"),
        ("WRONG_SHAPE", "first_step", lambda old: old - 1),
        ("WRONG_SHAPE", "first_step", lambda old: old + 1),
        ("TOKENIZER_MISMATCH", "tokenizer_fingerprint", lambda old: old ^ 1),
        ("WRONG_SHAPE", "observation_window", lambda old: old[:-1]),
        ("NOT_FINITE", "observation_window", lambda old: changed(old, 4, math.nan)),
        ("CODE_OUT_OF_RANGE", "codes", lambda old: [old[0], 8]),
        ("NOT_A_DISTRIBUTION", "draft_probabilities", lambda old: [4096] * 16),
    ],
)
def test_a_malformed_request_gets_its_status_and_the_next_good_one_a_reply(
    ask: Ask, good: dict[str, Any], fault: str, field: str, change: Callable[[Any], Any]
) -> None:
    name = field.split("[")[0]
    response = ask(VerifyDraft.Request(**{**good, name: change(good.get(name))}))
    assert response.status == RequestFault[fault]
    assert response.message.startswith(field)
    assert len(response.accepted) == len(response.actions) == 0
    assert ask(VerifyDraft.Request(**good)).status == VerifyDraft.Response.STATUS_OK


def test_huge_names_are_refused_in_short_and_not_kept(ask: Ask, good: dict[str, Any], stage: Stage) -> None:
    (process,) = stage.processes.all
    # The process has loaded everything once it replies; if this test runs first, it is still starting.
    assert ask(VerifyDraft.Request(**good)).status == VerifyDraft.Response.STATUS_OK
    before = len(process.output)
    rss_kb = _resident_kb(process.pid)
    for number in range(64):
        response = ask(
            VerifyDraft.Request(check_fields=False, **{**good, "robot_id": f"{number:08d}" * 2**18})
        )
        assert response.status == RequestFault.WRONG_SHAPE
        assert response.message == "robot_id: length 2097152, must be at most 64"
    assert _resident_kb(process.pid) - rss_kb < 64 * 1024  # half of what the names alone take
    assert len(process.output) - before < 10_000
    assert ask(VerifyDraft.Request(**good)).status == VerifyDraft.Response.STATUS_OK


def _resident_kb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
