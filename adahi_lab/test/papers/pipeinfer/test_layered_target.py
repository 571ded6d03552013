"""A target whose passes stop between layers."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from test.papers.conftest import CODEC, seen

from adahi_lab.papers.pipeinfer.layered_target import LayeredTarget, VoidRunError, load_layered
from adahi_lab.papers.tokens.token_checkpoint import load_tokens
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_lab.papers.tokens.token_sequence import TokenDistribution
from adahi_ros.policies.backends import load_policy

N = CODEC.codebooks


def layered(pair: Path) -> LayeredTarget:
    return LayeredTarget(load_tokens(pair / "target"))


def whole(pair: Path, seed: int = 0) -> list[int]:
    plain = load_policy(pair / "target", "onnxruntime")
    assert isinstance(plain, TokenPolicy)
    codes = plain.likeliest(seen(1, seed=seed), N).codes
    own: list[int] = codes[0].tolist()
    return own


def wrong(tokens: list[int], at: int) -> tuple[int, ...]:
    """The tokens, except one."""
    return (*tokens[:at], (tokens[at] + 1) % CODEC.codebook_size, *tokens[at + 1 :])


def test_runs_in_any_order_give_the_targets_own_tokens(pair: Path) -> None:
    own = whole(pair)
    for lengths in ([0, 1, 2, 3, 4, 5], [3, 5], [5, 2], [2, 2, 4]):
        target = layered(pair)
        for length in lengths:
            assert target.run(seen(1), tuple(own[:length])) == own[: length + 1]


def test_a_void_run_stops_between_layers(pair: Path) -> None:
    """Two runs at once: the second is in its second layer when the first refuses its token."""
    own, target = whole(pair), layered(pair)
    run, asked = wrong(own, 1)[:4], list[int]()

    def void() -> bool:
        asked.append(len(asked))
        if len(asked) == 2:  # before the second of two layers
            target.run(seen(1), tuple(own[:2]))
        return False

    with pytest.raises(VoidRunError) as caught:
        target.run(seen(1), run, void)
    assert caught.value.layers == 1
    assert caught.value.known[:2] == own[:2]


def test_a_run_that_continues_a_void_one_is_void(pair: Path) -> None:
    own, target = whole(pair), layered(pair)
    first, second = wrong(own, 0)[:2], wrong(own, 0)[:4]
    started, refused = threading.Event(), threading.Event()

    def hold() -> bool:
        started.set()
        refused.wait(10.0)
        return False

    def read(run: tuple[int, ...], void: object) -> None:
        with pytest.raises(VoidRunError):
            target.run(seen(1), run, void)  # type: ignore[arg-type]
        ended.append(run)

    ended: list[tuple[int, ...]] = []
    threads = [threading.Thread(target=read, args=(first, hold))]
    threads[0].start()
    started.wait(10.0)
    threads.append(threading.Thread(target=read, args=(second, lambda: False)))
    threads[1].start()
    target.run(seen(1), ())
    refused.set()
    for thread in threads:
        thread.join(10.0)
    assert sorted(ended) == sorted([first, second])


def test_a_run_that_continues_a_failed_one_accepts_nothing(
    pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run before it failed, so no token after the known ones is verified, whatever it is."""
    own, target = whole(pair), layered(pair)
    target.run(seen(1), ())

    def failed(*arguments: object) -> None:
        raise VoidRunError(0, own[:1])

    monkeypatch.setattr(target, "run", failed)
    with pytest.raises(VoidRunError):
        target.judge(seen(1), np.array([[own[0], 0, 0]]))


def test_another_rule_gets_a_clear_error(pair: Path) -> None:
    judged = layered(pair).judge(seen(1), np.array([whole(pair)[:2]])).distribution
    assert isinstance(judged, TokenDistribution)
    assert judged.resumed is not None
    with pytest.raises(ValueError, match="rule: must be 'likeliest'"):
        judged.resumed(np.zeros((1, N), dtype=np.int64), 1, np.array([0]))


@pytest.mark.parametrize("value", [0, 1.5])
def test_wrong_values_are_refused(pair: Path, value: int) -> None:
    with pytest.raises(ValueError, match=r"at_once: .* must be"):
        load_layered(pair, checkpoint="target", at_once=value)
