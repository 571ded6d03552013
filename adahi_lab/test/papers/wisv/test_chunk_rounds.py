"""A chunk in rounds: without kept mismatches it is the target's own; with them it needs fewer rounds."""

from __future__ import annotations

import numpy as np

from adahi_lab.papers.tokens.observed_chunks import load_token_policy
from adahi_lab.papers.wisv.chunk_rounds import in_rounds
from adahi_lab.papers.wisv.hidden_states import HiddenStates
from adahi_ros.core.assets import asset

FOLDER, B, N = asset("checkpoints/metaworld/tokens"), 6, 32
HEAD = str(FOLDER / "wisv.safetensors")


def test_kept_mismatches_save_rounds() -> None:
    draft, target = (load_token_policy(FOLDER / name) for name in ("draft", "target"))
    observed = np.random.default_rng(3).normal(scale=0.1, size=(B, 4, 18)).astype(np.float32)
    ours, theirs = (each.signature.observations(observed, np.zeros((B, 35))) for each in (draft, target))
    made = []
    for tolerance in (0.0, 0.4, 1.0):
        codes, rounds = in_rounds(draft, target, (ours, theirs), HiddenStates(HEAD, tolerance=tolerance))
        decided = np.zeros(B, int)
        for each in rounds:  # a round begins where the one before ended, behind the target's token
            np.testing.assert_array_equal(each.begin, decided[each.rows])
            decided[each.rows] = np.minimum(each.begin + each.accepted + 1, N)
        assert (decided == N).all()
        made.append((codes, sum(len(each.rows) for each in rounds)))
    np.testing.assert_array_equal(made[0][0], target.likeliest(theirs, N).codes)
    assert made[2][1] == 4 * B < made[1][1] < made[0][1]  # nine tokens a round, one of them the target's
