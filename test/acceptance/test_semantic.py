"""At tolerance 0 it is speculative sampling, exactly; above, it only ever lets more of the drafts stand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from adahi_ros.acceptance.registry import made
from adahi_ros.acceptance.semantic import Semantic, SemanticHead, load_semantic_head, save_semantic_head
from adahi_ros.acceptance.speculative import Speculative
from adahi_ros.core.assets import CHECKPOINTS, asset
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.proposal import CodeDistribution, Proposal, counted
from adahi_ros.core.signature import OBSERVATION, CodeSpace, Feature, Signature
from adahi_ros.core.tensor_files import read_tensors
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy, fingerprint_of
from adahi_ros.protocol.request import sent_codes
from adahi_ros.server.verifier import TargetVerifier

M, N, K, A = 40, 2, 4, 3
READ = N * K + 2 * N + A


def pair(seed: int) -> tuple[Proposal, Proposal, np.ndarray]:
    """A draft and a target of M robots, and draws."""
    draw = np.random.default_rng(seed)
    table = draw.normal(size=(N, K, 1, A)).astype(np.float32)

    def actions_of(codes: np.ndarray) -> np.ndarray:
        actions: np.ndarray = table[np.arange(N), codes].sum(axis=1)
        return actions

    counts = counted(draw.dirichlet(np.ones(K), size=(M, N)))
    drafted = counts.argmax(axis=-1)
    codes = draw.integers(K, size=(M, N))
    target = CodeDistribution(draw.dirichlet(np.ones(K), size=(M, N)).astype(np.float32), codes, actions_of)
    draft = Proposal(np.zeros((M, 1, A), np.float32), sent_codes(drafted, counts))
    return draft, Proposal(actions_of(codes), target), draw.random((M, N, 2))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    draw = np.random.default_rng(9)
    path = tmp_path_factory.mktemp("head") / "head.safetensors"
    head = SemanticHead(draw.normal(size=READ), np.ones(READ), draw.normal(size=READ), np.zeros(1))
    save_semantic_head(path, head)
    return str(path)


@given(st.integers(0, 2**32 - 1))
def test_at_tolerance_0_it_is_speculative_sampling_exactly(file: str, seed: int) -> None:
    inputs = pair(seed)
    expected = Speculative().verify(*inputs)
    free = np.zeros(M)  # of a link on which a round trip costs nothing
    for verdict in (
        Semantic().verify(*inputs),
        Semantic(file).verify(*inputs),
        Semantic(file, patience_ms=50.0).verify(*inputs, round_trip_ms=free),
    ):
        np.testing.assert_array_equal(verdict.actions, expected.actions)
        np.testing.assert_array_equal(verdict.accepted, expected.accepted)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.99))
def test_what_it_lets_stand_is_the_drafts_own_and_the_rest_is_as_it_was(
    file: str, seed: int, tolerance: float
) -> None:
    draft, target, draws = pair(seed)
    plain, verdict = (
        Speculative().verify(draft, target, draws),
        Semantic(file, tolerance).verify(draft, target, draws),
    )
    more = Semantic(file, min(1.0, tolerance + 0.3)).verify(draft, target, draws)
    assert (verdict.accepted >= plain.accepted).all()
    assert (more.accepted >= verdict.accepted).all()
    stands = (verdict.accepted > plain.accepted).any(axis=1)
    assert verdict.accepted[stands].all()  # whole drafts, not a code of each
    assert draft.distribution is not None
    assert target.distribution is not None
    own = target.distribution.actions_of(draft.distribution.codes)
    np.testing.assert_array_equal(verdict.actions[stands], own[stands])
    np.testing.assert_array_equal(verdict.actions[~stands], plain.actions[~stands])


def test_at_tolerance_1_everything_stands(file: str) -> None:
    assert Semantic(file, 1.0).verify(*pair(0)).accepted.all()


def test_the_drawn_codes_probabilities_alone_decide_what_stands(file: str) -> None:
    draft, target, draws = pair(1)
    sent = draft.distribution
    assert sent is not None
    drawn = np.arange(K) == sent.codes[..., None]
    brief = CodeDistribution(np.where(drawn, sent.probabilities, 0.0), sent.codes, sent.actions_of)
    first = Speculative().verify(Proposal(draft.actions, brief), target, draws).accepted
    np.testing.assert_array_equal(first, Speculative().verify(draft, target, draws).accepted)
    assert not first.all()


def test_a_longer_round_trip_lets_more_stand_an_unknown_one_no_more(file: str) -> None:
    inputs, rule = pair(2), Semantic(file, 0.2, patience_ms=50.0)
    shares = [
        rule.verify(*inputs, round_trip_ms=np.full(M, ms)).accepted.all(axis=1).mean()
        for ms in (0, 5, 25, 60)
    ]
    assert shares == sorted(shares)
    assert shares[0] < shares[-1] == 1.0
    tolerant = Semantic(file, 0.2).verify(*inputs)
    unknown = rule.verify(*inputs, round_trip_ms=np.full(M, np.nan))
    np.testing.assert_array_equal(unknown.actions, tolerant.actions)
    np.testing.assert_array_equal(rule.verify(*inputs).actions, tolerant.actions)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tolerance": 0.1}, "file: empty, must be a head's where a risk is to be taken"),
        ({"tolerance": 1.1}, "tolerance: 1.1, must be 0 to 1"),
        ({"patience_ms": 0.0}, "patience_ms: 0.0, must be above 0"),
        ({"bold": 1.0}, "rule semantic: got an unexpected keyword argument 'bold'; its arguments are: file"),
    ],
)
def test_arguments_that_cannot_be_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        made("semantic", arguments)


SIGNATURE = Signature(1, 1, A, (Feature(OBSERVATION, 1),), codes=CodeSpace("0" * 16, N, K))
OURS, OTHER = "0123456789abcdef", "fedcba9876543210"


def head_file(path: Path, count: int, target: str = "") -> str:
    zeros, ones = np.zeros(count), np.ones(count)
    save_semantic_head(path, SemanticHead(zeros, ones, zeros, np.zeros(1), target))
    return str(path)


def test_a_head_of_other_sizes_is_refused_before_the_first_draft(
    tmp_path: Path, fixed_policy: Callable[..., Policy]
) -> None:
    small = {"file": head_file(tmp_path / "small.safetensors", 3), "tolerance": 0.5}
    message = f"^file: a head that reads 3 signs, must be one of {READ}, the target's$"
    with pytest.raises(ValueError, match=message):
        made("semantic", small).check_target(SIGNATURE, "")
    with pytest.raises(ValueError, match=r"^file: a head that reads 3 signs, must be one of"):
        TargetVerifier(fixed_policy([[0.5, 0.5]]), "semantic", arguments=small)


def test_a_head_of_other_weights_of_the_same_sizes_is_refused(tmp_path: Path) -> None:
    rule = Semantic(head_file(tmp_path / "head.safetensors", READ, OURS), 0.5)
    rule.check_target(SIGNATURE, OURS)
    rule.check_target(SIGNATURE, "")  # of which nobody knows
    with pytest.raises(ValueError, match=f"^file: a head for the target {OURS}, must be one for {OTHER};"):
        rule.check_target(SIGNATURE, OTHER)
    Semantic(head_file(tmp_path / "untold.safetensors", READ), 0.5).check_target(SIGNATURE, OTHER)
    Semantic().check_target(SIGNATURE, OTHER)


def test_a_head_says_of_which_target_it_is_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "head.safetensors"
    head_file(path, READ, OURS)
    assert load_semantic_head(path).target == OURS
    save_file(read_tensors(path), path, {"target": "../ball"})
    with pytest.raises(CheckpointError, match=r"target: '../ball', must be 16 hexadecimal digits"):
        load_semantic_head(path)


@pytest.mark.parametrize("task", ["ball", "kitchen", "metaworld"])
def test_the_shipped_heads_are_of_the_shipped_targets(task: str) -> None:
    folder = asset(CHECKPOINTS) / task
    target = load_policy(folder / "target", "onnxruntime")
    head = load_semantic_head(folder / "semantic.safetensors")
    assert head.target == fingerprint_of(target)
    Semantic(str(folder / "semantic.safetensors"), 0.1).check_target(target.signature, head.target)


@given(st.integers(0, 2**32 - 1), st.floats(1.0, 1e3))
def test_by_link_the_tolerance_is_the_round_trip_as_a_share_of_patience(
    file: str, seed: int, patience_ms: float
) -> None:
    inputs = pair(seed)
    by_link, tolerant = Semantic(file, patience_ms=patience_ms), Semantic(file, 0.25)
    assert by_link.uses_link
    assert not tolerant.uses_link
    verdict = by_link.verify(*inputs, round_trip_ms=np.full(M, 0.25 * patience_ms))
    np.testing.assert_array_equal(verdict.actions, tolerant.verify(*inputs).actions)


@pytest.mark.parametrize(
    ("name", "value"), [("scale", 0.0), ("weight", np.nan), ("bias", np.inf), ("mean", -np.inf)]
)
def test_a_damaged_head_is_refused(tmp_path: Path, name: str, value: float) -> None:
    parts: Any = {"mean": np.zeros(3), "scale": np.ones(3), "weight": np.zeros(3), "bias": np.zeros(1)}
    parts[name][0] = value
    path = tmp_path / "head.safetensors"
    save_semantic_head(path, SemanticHead(**parts))
    with pytest.raises(CheckpointError, match=f"not the weights of a semantic head .*{name}"):
        load_semantic_head(path)


def test_a_missing_head_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError):
        Semantic(str(tmp_path / "none.safetensors"))
