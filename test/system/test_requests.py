"""The verifier replies to every request: to a good one with actions, to a malformed one with a status."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from hypothesis import given, settings
from hypothesis import strategies as st
from sensor_msgs.msg import CompressedImage

from adahi_ros.core.proposal import counted
from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.nodes.common.verifier_messages import from_description, from_reply
from adahi_ros.nodes.server.robot_messages import from_request
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import fingerprint_of
from adahi_ros.policies.vqbet.vqbet_checkpoint import load_decoder
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.request import PROTOCOL_VERSION, RequestFault, fingerprint_number
from adahi_ros.protocol.window import WireWindow, window_digest
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
        ("WRONG_SHAPE", "draft_actions", lambda old: [0.0]),
        ("NOT_FINITE", "draft_actions", lambda old: [0.0, math.nan]),
        ("WRONG_SHAPE", "codes", lambda old: []),
        ("TOKENIZER_MISMATCH", "tokenizer_fingerprint", lambda old: old ^ 1),
        ("TOKENIZER_MISMATCH", "tokenizer_fingerprint", lambda old: 0),
        ("WRONG_SHAPE", "observation_window", lambda old: old[:-1]),
        ("WRONG_SHAPE", "observation_window", lambda old: []),
        ("WRONG_SHAPE", "observation_window", lambda old: [*old, *old]),
        ("WRONG_SHAPE", "features", lambda old: [0]),
        ("WRONG_SHAPE", "images", lambda old: [CompressedImage(format="jpeg")]),
        ("WRONG_SHAPE", "images[1].format", lambda old: [CompressedImage(format="jpeg"), CompressedImage()]),
        ("WRONG_SHAPE", "goal", lambda old: []),
        ("WRONG_SHAPE", "codes", lambda old: [*old, 1]),
        ("WRONG_SHAPE", "draft_probabilities", lambda old: old[:8]),
        ("NOT_FINITE", "observation_window", lambda old: changed(old, 4, math.nan)),
        ("NOT_FINITE", "goal", lambda old: changed(old, 1, math.inf)),
        ("CODE_OUT_OF_RANGE", "codes", lambda old: [old[0], 8]),
        ("CODE_OUT_OF_RANGE", "codes", lambda old: [65535, 0]),
        ("NOT_A_DISTRIBUTION", "draft_probabilities", lambda old: [4096] * 16),
        ("NOT_A_DISTRIBUTION", "draft_probabilities", lambda old: [65535, 65535, *[0] * 6] * 2),
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


FLOATS = st.floats(width=32)
LARGE = st.floats(-(2.0**127), 2.0**127, width=32)


def floats(size: int) -> st.SearchStrategy[list[float]]:
    """Any numbers of any size, finite ones of the right size, and harmless ones."""
    return st.one_of(
        st.lists(FLOATS, max_size=20),
        st.lists(LARGE, min_size=size, max_size=size),
        st.just([1.0 / 8.0] * size),
    )


IMAGES = st.builds(
    CompressedImage,
    format=st.sampled_from(["jpeg", "png", ""]),
    data=st.binary(max_size=8).map(list),
)


@settings(max_examples=100)
@given(
    base=st.one_of(st.just(0), st.integers(0, 2**64 - 1)),
    window=floats(18),
    features=st.one_of(st.just([]), st.lists(st.integers(0, 65535), max_size=20)),
    images=st.one_of(st.just([]), st.lists(IMAGES, max_size=4)),
    goal=floats(2),
    codes=st.one_of(st.lists(st.integers(0, 65535), max_size=4), st.just([1, 2])),
    probabilities=st.one_of(st.lists(st.integers(0, 65535), max_size=20), st.just([65535, *[0] * 7] * 2)),
    step=st.integers(0, 2**32 - 1),
    robot=st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=8),
)
def test_no_request_is_an_internal_error(
    ask: Ask,
    exported: Path,
    base: int,
    window: list[float],
    features: list[int],
    images: list[CompressedImage],
    goal: list[float],
    codes: list[int],
    probabilities: list[int],
    step: int,
    robot: str,
) -> None:
    request = VerifyDraft.Request(
        protocol=PROTOCOL_VERSION,
        robot_id=robot,
        episode_id=step,
        step_id=step,
        first_step=step,
        tokenizer_fingerprint=fingerprint_number(load_decoder(exported).fingerprint),
        base_window=base,
        observation_window=window,
        features=features,
        images=images,
        goal=goal,
        codes=codes,
        draft_probabilities=probabilities,
    )
    response = ask(request)
    assert response.status != VerifyDraft.Response.STATUS_INTERNAL_ERROR, response.message
    assert (response.status == VerifyDraft.Response.STATUS_OK) == (len(response.actions) == 2)
    assert bool(response.message) == (response.status != VerifyDraft.Response.STATUS_OK)
    assert np.isfinite(response.actions).all()


def test_a_window_may_be_sent_as_what_is_new_after_an_earlier_one(ask: Ask, good: dict[str, Any]) -> None:
    window, goal = (
        np.array(good["observation_window"], np.float32).reshape(3, 6),
        np.array(good["goal"], np.float32),
    )
    rows = WireWindow.pack(window, goal).rows.digests(3)
    base = {"base_window": window_digest(rows, goal.tobytes())}
    newest = np.array([0.5, 0.25, 0.125, 1.0, 2.0, 4.0], np.float32)
    whole = [*good["observation_window"][6:], *newest.tolist()]
    other = ask(VerifyDraft.Request(**{**good, **base, "robot_id": "other", "observation_window": newest}))
    assert (other.status, other.message[:11]) == (RequestFault.WINDOW_UNKNOWN, "base_window")
    assert ask(VerifyDraft.Request(**good)).status == VerifyDraft.Response.STATUS_OK
    changes = {"step_id": 8, "first_step": 8, "goal": [], **base}
    short = ask(VerifyDraft.Request(**{**good, **changes, "observation_window": newest}))
    long = ask(VerifyDraft.Request(**{**good, "step_id": 8, "first_step": 8, "observation_window": whole}))
    assert short.status == long.status == VerifyDraft.Response.STATUS_OK
    short.compute_time_ms = long.compute_time_ms = 0.0
    assert short == long
    broken = ask(VerifyDraft.Request(**{**good, **changes, "observation_window": newest[:4]}))
    assert (broken.status, broken.message[:18]) == (RequestFault.WRONG_SHAPE, "observation_window")


def test_what_overflows_the_target_is_refused(ask: Ask, good: dict[str, Any]) -> None:
    response = ask(VerifyDraft.Request(**{**good, "observation_window": [1e38] * 18}))
    assert response.status == RequestFault.NOT_FINITE
    assert response.message.startswith("observation_window")
    assert ask(VerifyDraft.Request(**good)).status == VerifyDraft.Response.STATUS_OK


def test_it_describes_itself(ask: Ask, stage: Stage, exported: Path) -> None:
    description = stage.client(DescribeTarget, "describe_target")(DescribeTarget.Request())
    policy = load_policy(exported / "target", "onnxruntime")
    name = f"{exported.name}/target"
    weights = fingerprint_of(policy)
    assert weights
    assert from_description(description) == Description(
        name, "speculative", policy.signature, policy_fingerprint=weights
    )


def test_its_name_is_that_which_it_describes(ask: Ask, good: dict[str, Any], exported: Path) -> None:
    request = VerifyDraft.Request(**good, target=f"{exported.name}/target")
    assert ask(request).status == VerifyDraft.Response.STATUS_OK


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
