from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.loaded_policies import Bench
from adahi_lab.evaluation.method_needs import Demands, demands, traffic
from adahi_lab.evaluation.rollout import Log
from adahi_lab.methods.methods import METHODS
from adahi_lab.tasks import make
from adahi_ros.core.signature import Signature
from adahi_ros.protocol.window import reply_bytes, request_bytes
from test.tiny_intents import tiny_intents

SPEC = make("ball").spec


@pytest.fixture(scope="module")
def bench(comparison: Comparison) -> Bench:
    """With a corrector and a distilled policy, or what stands in for them."""
    plain = comparison.bench()
    draft: Any = plain.policies.draft
    return replace(plain, policies=replace(plain.policies, corrector=draft, distilled=draft))


@pytest.mark.parametrize(
    ("name", "needs", "weights"),
    [
        ("adahi", ("draft", "target"), "draft"),
        ("hybrid", ("draft", "target"), "draft"),
        ("draft", ("draft",), "draft"),
        ("target", ("target",), None),
        ("distilled", ("distilled",), "distilled"),
        ("random:replace", ("draft", "target"), "draft"),
        ("oracle", ("draft", "target", "what no robot knows"), "draft"),
        ("plan_4", ("target that plans",), None),
        ("corrector_4", ("target that plans", "corrector"), "corrector"),
        ("draft_checks_plan:expected_error@1", ("target that plans", "draft"), "draft"),
    ],
)
def test_what_methods_need(bench: Bench, name: str, needs: tuple[str, ...], weights: str | None) -> None:
    found = demands(METHODS[name], bench)
    assert found.needs == needs
    assert found.weights == (0 if weights is None else getattr(bench.policies, weights).signature.parameters)
    requested = None if name in ("draft", "distilled") else "plans" if "plan" in needs[0] else "target"
    assert found.target == (None if requested is None else getattr(bench.policies, requested).signature)
    assert found.codes == ("draft" in needs and requested == "target")


def test_what_is_done_before_a_late_reply_is_sent(bench: Bench) -> None:
    assert demands(METHODS["plan_4"], bench).late == 0
    assert demands(METHODS["plan_4+2"], bench).late == 2


def test_of_what_is_somebodys_own_only_he_knows_the_weights(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(
        "class Gate:\n    proposer, threshold = 'plan', 1.0\n    def score(self, context): ...\n"
        "class Own:\n    def propose(self, context): ...\n"
    )
    gate, own = (demands(METHODS[f"{path}:{name}"], bench) for name in ("Gate", "Own"))
    assert (gate.needs, gate.weights) == (("target that plans", "your own file"), 0)
    assert (own.needs, own.weights) == (("draft", "target", "your own file"), None)


def log_of(transmitted: list[list[int]]) -> Log:
    """(T, E), of which the last episode ends a step before."""
    sent = np.array(transmitted, dtype=bool)
    active = np.ones_like(sent)
    active[-1, -1] = False
    nothing = np.zeros(sent.shape)
    return Log(active, sent, nothing, nothing, active[..., None], nothing, nothing, ~active, nothing, ~active)


def signature(bench: Bench) -> Signature:
    found = demands(METHODS["adahi"], bench).target
    assert found is not None
    assert (found.history, found.observation_dim, found.goal_dim, found.horizon) == (3, 6, 2, 1)
    return found


def test_bytes_by_hand(bench: Bench) -> None:
    target = signature(bench)
    log = log_of([[0, 1], [1, 1], [1, 0], [0, 0], [0, 0], [1, 1]])
    up, down = traffic(log, demands(METHODS["adahi"], bench), SPEC) or (0.0, 0.0)
    whole = request_bytes(3 * 6, goal=2, codes=2, counts=2 * 8)
    one = request_bytes(1 * 6, codes=2, counts=2 * 8)  # what the verifier has not seen
    assert up == (whole + one + whole + whole + one) / 2  # after three steps a window shares nothing
    assert down == 5 * reply_bytes(target.action_dim, 2, codes=2) / 2  # past an episode's end nothing is sent
    plans = Demands(target=replace(target, codes=None, horizon=8), late=2)
    up, down = traffic(log, plans, SPEC) or (0.0, 0.0)
    assert up == (3 * request_bytes(18, goal=2, actions=4) + 2 * request_bytes(6, actions=4)) / 2
    assert down == 5 * reply_bytes(6 * 2) / 2


def test_replies_with_an_intent_have_no_plan(bench: Bench, tmp_path: Path) -> None:
    plans = bench.policies.plans
    assert plans is not None
    for at_target in (True, False):
        acting = tiny_intents(tmp_path, "intent", plans.signature, at_target)
        with_intent = replace(bench, policies=replace(bench.policies, intent=acting))
        found = demands(METHODS["intent:delay=1+age@59"], with_intent)
        assert (found.needs, found.weights) == (("target that plans", "intent"), acting.signature.parameters)
        _, down = traffic(log_of([[1, 1], [0, 0]]), found, SPEC) or (0.0, 0.0)
        actions = plans.signature.horizon * plans.signature.action_dim
        codes = 0 if plans.signature.codes is None else plans.signature.codes.codebooks
        whole = reply_bytes(actions, codes=codes)
        assert down == (reply_bytes(0, intent=acting.size) if at_target else whole)


def test_nothing_is_sent_without_requests_or_known_of_an_unknown_method(bench: Bench) -> None:
    assert traffic(log_of([[0, 0], [0, 1]]), demands(METHODS["draft"], bench), SPEC) == (0.0, 0.0)
    assert traffic(log_of([[1, 0], [0, 1]]), Demands(), SPEC) is None


def test_of_images_that_are_sent_no_one_knows_the_bytes(bench: Bench) -> None:
    """How long a JPEG is depends on what it shows."""
    seen, asks = replace(SPEC, images_for_target=True), demands(METHODS["adahi"], bench)
    assert traffic(log_of([[1, 0], [0, 1]]), asks, seen) is None
    assert traffic(log_of([[0, 0], [0, 0]]), asks, seen) == (0.0, 0.0)
