"""The verifier answers every request: a good one with codes, a malformed one with a status."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from hypothesis import given, settings
from hypothesis import strategies as st

from adahi_ros.nodes.messages import from_answer, from_request
from adahi_ros.policy.backends import load_policy
from adahi_ros.policy.checkpoint import load_decoder
from adahi_ros.speculation.request import RequestFault, check_request
from adahi_ros.speculation.verifier import TargetVerifier, verification_uniforms

Ask = Callable[[VerifyDraft.Request], VerifyDraft.Response]
SEED = 5


@pytest.fixture(scope="module")
def ask(stage: Any, exported: Path) -> Iterator[Ask]:
    process = stage.start("target_verifier_node", checkpoint=str(exported / "target"), seed=SEED)
    client = stage.node.create_client(VerifyDraft, "verify_draft")
    yield lambda request: stage.call(client, request)
    process.ask_to_end()
    process.end()
    assert process.exit_code == 0
    assert "Traceback" not in process.output


@pytest.fixture
def good(exported: Path) -> dict[str, Any]:
    """The fields of a request that is right: H 3, O 6, G 2, N 2, K 8."""
    draw = np.random.default_rng(1)
    return {
        "robot_id": "robot",
        "episode_id": 3,
        "step_id": 7,
        "tokenizer_fingerprint": load_decoder(exported).fingerprint,
        "observation_window": draw.normal(size=18).tolist(),
        "goal": [0.1, -0.1],
        "codes": [2, 5],
        "draft_probabilities": draw.dirichlet(np.ones(8), size=2).ravel().tolist(),
    }


def changed(values: list[float], index: int, value: float) -> list[float]:
    return [*values[:index], value, *values[index + 1 :]]


def test_a_good_request_gets_the_answer_of_the_verifier_in_process(
    ask: Ask, good: dict[str, Any], exported: Path
) -> None:
    request = VerifyDraft.Request(**good)
    response = ask(request)
    assert response.status == VerifyDraft.Response.STATUS_OK
    assert (response.episode_id, response.step_id) == (3, 7)
    policy = load_policy(exported / "target", "onnxruntime")
    checked = check_request(policy.spec, *from_request(request))
    expected = TargetVerifier(policy).verify(checked, verification_uniforms(SEED, "robot", 3, 7, 2))
    codes, accepted, offset = from_answer(response)
    assert codes.tolist() == expected.codes[0].tolist()
    assert accepted.tolist() == expected.accepted[0].tolist()
    np.testing.assert_array_equal(offset, expected.offset.ravel())


@pytest.mark.parametrize(
    ("fault", "field", "change"),
    [
        ("TOKENIZER_MISMATCH", "tokenizer_fingerprint", lambda old: "0123456789abcdef"),
        ("TOKENIZER_MISMATCH", "tokenizer_fingerprint", lambda old: ""),
        ("WRONG_SHAPE", "observation_window", lambda old: old[:-1]),
        ("WRONG_SHAPE", "observation_window", lambda old: []),
        ("WRONG_SHAPE", "goal", lambda old: []),
        ("WRONG_SHAPE", "codes", lambda old: [*old, 1]),
        ("WRONG_SHAPE", "draft_probabilities", lambda old: old[:8]),
        ("NOT_FINITE", "observation_window", lambda old: changed(old, 4, math.nan)),
        ("NOT_FINITE", "goal", lambda old: changed(old, 1, math.inf)),
        ("NOT_FINITE", "draft_probabilities", lambda old: changed(old, 0, math.nan)),
        ("CODE_OUT_OF_RANGE", "codes", lambda old: [old[0], 8]),
        ("CODE_OUT_OF_RANGE", "codes", lambda old: [65535, 0]),
        ("NOT_A_DISTRIBUTION", "draft_probabilities", lambda old: [0.5] * 16),
        ("NOT_A_DISTRIBUTION", "draft_probabilities", lambda old: [1.5, -0.5, *[0.0] * 6] * 2),
    ],
)
def test_a_malformed_request_gets_its_status_and_the_next_good_one_an_answer(
    ask: Ask, good: dict[str, Any], fault: str, field: str, change: Callable[[Any], Any]
) -> None:
    response = ask(VerifyDraft.Request(**{**good, field: change(good[field])}))
    assert response.status == RequestFault[fault]
    assert response.message.startswith(field)
    assert len(response.codes) == len(response.accepted) == len(response.offset) == 0
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


@settings(max_examples=100)
@given(
    window=floats(18),
    goal=floats(2),
    codes=st.one_of(st.lists(st.integers(0, 65535), max_size=4), st.just([1, 2])),
    probabilities=st.one_of(floats(16), st.just([0.125] * 16)),
    step=st.integers(0, 2**32 - 1),
    robot=st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=8),
)
def test_no_request_is_an_internal_error(
    ask: Ask,
    exported: Path,
    window: list[float],
    goal: list[float],
    codes: list[int],
    probabilities: list[float],
    step: int,
    robot: str,
) -> None:
    request = VerifyDraft.Request(
        robot_id=robot,
        episode_id=step,
        step_id=step,
        tokenizer_fingerprint=load_decoder(exported).fingerprint,
        observation_window=window,
        goal=goal,
        codes=codes,
        draft_probabilities=probabilities,
    )
    response = ask(request)
    assert response.status != VerifyDraft.Response.STATUS_INTERNAL_ERROR, response.message
    assert (response.status == VerifyDraft.Response.STATUS_OK) == (len(response.codes) == 2)
    assert bool(response.message) == (response.status != VerifyDraft.Response.STATUS_OK)
    assert np.isfinite(response.offset).all()


def test_what_overflows_the_target_is_refused(ask: Ask, good: dict[str, Any]) -> None:
    response = ask(VerifyDraft.Request(**{**good, "observation_window": [1e38] * 18}))
    assert response.status == RequestFault.NOT_FINITE
    assert response.message.startswith("observation_window")
    assert ask(VerifyDraft.Request(**good)).status == VerifyDraft.Response.STATUS_OK


def test_it_describes_itself(ask: Ask, stage: Any, exported: Path) -> None:
    client = stage.node.create_client(DescribeTarget, "describe_target")
    description = stage.call(client, DescribeTarget.Request())
    policy = load_policy(exported / "target", "onnxruntime")
    assert description.tokenizer_fingerprint == policy.decoder.fingerprint
    assert description.parameters == policy.spec.parameters
    sizes = (description.window_length, description.observation_dim, description.goal_dim)
    assert sizes == (policy.spec.window_length, policy.spec.observation_dim, policy.spec.goal_dim)
