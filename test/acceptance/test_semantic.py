"""At tolerance 0 it is speculative sampling, exactly; above, it only ever lets more of the drafts stand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.acceptance.rules import made
from adahi_ros.acceptance.semantic import Semantic, SemanticHead, load_semantic_head, save_semantic_head
from adahi_ros.acceptance.speculative import Speculative
from adahi_ros.networks.checkpoint_files import CheckpointError
from adahi_ros.policy.distribution import counted
from adahi_ros.policy.proposal import CodeDistribution, Proposal
from adahi_ros.wire.request import sent_codes

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
    asked = pair(seed)
    expected = Speculative().verify(*asked)
    free = np.zeros(M)  # of a link on which a round trip costs nothing
    for verdict in (
        Semantic().verify(*asked),
        Semantic(file).verify(*asked),
        Semantic(file, patience_ms=50.0).verify(*asked, round_trip_ms=free),
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


def test_a_longer_round_trip_lets_more_stand_and_one_that_nobody_knows_is_as_told(file: str) -> None:
    asked, rule = pair(2), Semantic(file, 0.2, patience_ms=50.0)
    shares = [
        rule.verify(*asked, round_trip_ms=np.full(M, ms)).accepted.all(axis=1).mean() for ms in (0, 5, 25, 60)
    ]
    assert shares == sorted(shares)
    assert shares[0] < shares[-1] == 1.0
    told = Semantic(file, 0.2).verify(*asked)
    unknown = rule.verify(*asked, round_trip_ms=np.full(M, np.nan))
    np.testing.assert_array_equal(unknown.actions, told.actions)
    np.testing.assert_array_equal(rule.verify(*asked).actions, told.actions)


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


def test_a_head_of_another_target_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "small.safetensors"
    save_semantic_head(path, SemanticHead(np.zeros(3), np.ones(3), np.zeros(3), np.zeros(1)))
    with pytest.raises(ValueError, match=f"file: a head that reads 3 signs, must be one of {READ}"):
        Semantic(str(path), 0.5).verify(*pair(0))


@pytest.mark.parametrize(
    ("name", "value"), [("scale", 0.0), ("weight", np.nan), ("bias", np.inf), ("mean", -np.inf)]
)
def test_a_damaged_head_is_refused(tmp_path: Path, name: str, value: float) -> None:
    parts = {"mean": np.zeros(3), "scale": np.ones(3), "weight": np.zeros(3), "bias": np.zeros(1)}
    parts[name][0] = value
    path = tmp_path / "head.safetensors"
    save_semantic_head(path, SemanticHead(**parts))
    with pytest.raises(CheckpointError, match=f"not the weights of a semantic head .*{name}"):
        load_semantic_head(path)


def test_a_missing_head_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError):
        Semantic(str(tmp_path / "none.safetensors"))
