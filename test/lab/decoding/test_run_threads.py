"""A chunk decoded by threads is the target's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from adahi_ros.core.assets import asset
from adahi_ros.lab.decoding.observed_chunks import load_token_policy
from adahi_ros.lab.decoding.run_threads import by_threads
from adahi_ros.lab.decoding.texts import PolicyText, own_chunk
from adahi_ros.policies.tokens.greedy_draft import GreedyDraft
from adahi_ros.policies.tokens.layered_target import LayeredTarget
from adahi_ros.policies.tokens.token_checkpoint import load_tokens

FOLDER = "checkpoints/metaworld/tokens"


@pytest.mark.parametrize(("targets", "at_once"), [(1, 4), (2, 1)])
def test_it_is_the_targets_own(targets: int, at_once: int) -> None:
    folder: Path = asset(FOLDER)
    draft, plain = (load_token_policy(folder / name) for name in ("draft", "target"))
    for_draft, for_target = draft.signature.nothing(), plain.signature.nothing()
    text = PolicyText(draft, plain, for_draft, for_target)
    readers = [LayeredTarget(load_tokens(folder / "target"), at_once, 1e-3) for _ in range(targets)]
    made = by_threads(GreedyDraft(draft, for_draft), readers, for_target, 4, 4)
    assert made.tokens == own_chunk(text)
    assert made.runs > 1
    assert made.drafted >= 31 - made.runs
