"""A target that was asked before says of each recorded step what it said then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from adahi_lab.calibration.replayed_targets import why_no_encoder
from adahi_lab.calibration.target_plans import Planned, with_person
from adahi_lab.calibration.target_replies import ask_by_expected_error
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.training.corrector_data import AGES, recorded_examples
from adahi_ros.core.signature import GOAL, IMAGE_FEATURES, OBSERVATION, Feature, Signature
from adahi_ros.policies.corrector.corrector import Corrector
from adahi_ros.policies.corrector.corrector_checkpoint import CorrectorCheckpoint, CorrectorConfig
from adahi_ros.policies.corrector.corrector_features import FeatureScales

LENGTHS, SAMPLES, T, A = (3, 5, 40), 2, 8, 2


def planned() -> Planned:
    steps = sum(LENGTHS)
    data = Trajectories(
        "toy",
        np.zeros((steps, 3), np.float32),
        np.zeros((steps, A), np.float32),
        np.ones((len(LENGTHS), 1), np.float32),
        np.cumsum(LENGTHS),
    )
    plans = np.arange(steps * SAMPLES * T * A, dtype=np.float32).reshape(steps, SAMPLES, T, A)
    return Planned(data, plans, np.full(A, 2.0, np.float32))


def test_what_a_target_does_not_read_is_left_out() -> None:
    made = planned()
    made = replace(made, data=replace(made.data, image_features=np.ones((len(made.plans), 4), np.float32)))
    for reads in ((), (GOAL,), (IMAGE_FEATURES,), (GOAL, IMAGE_FEATURES)):
        features = (Feature(OBSERVATION, 3), *[Feature(IMAGE_FEATURES, 4)] * (IMAGE_FEATURES in reads))
        signature = Signature(1, T, A, features, (Feature(GOAL, 1),) * (GOAL in reads))
        left = made.as_read_by(signature).data
        assert (left.goals.shape[1] == 1, left.image_features.shape[1] == 4) == (
            GOAL in reads,
            IMAGE_FEATURES in reads,
        )
        assert bool(why_no_encoder(signature)) == (not reads)


def test_a_robot_asks_where_half_of_a_plan_is_gone_by() -> None:
    made = planned()
    made = replace(made, plans=np.zeros_like(made.plans))
    zero, one = (lambda n: np.zeros(n, np.float32)), (lambda n: np.ones(n, np.float32))
    scales = FeatureScales(zero(3), one(3), one(3), zero(1), one(1), zero(A), one(A))
    sizes, described = CorrectorConfig(3, 1, A, T, hidden=4), {"parameters": 1}
    checkpoint = CorrectorCheckpoint(Path(), sizes, described, scales, zero(A), one(A))
    corrector = Unsure(checkpoint)
    asking = ask_by_expected_error(made, corrector, "digest", [2], 0)
    assert asking.rate == 10 / 40  # T / 2 = 4 steps
    # It expects to be off by its plan's age in plans: more than 3 of 8, and 4 is.
    assert np.exp(0.5 * 3 / T) <= asking.threshold < np.exp(0.5 * 4 / T)


class Unsure(Corrector):
    """Corrects nothing, and is the less sure the older the plan."""

    def __init__(self, checkpoint: CorrectorCheckpoint) -> None:
        object.__setattr__(checkpoint, "digest", lambda: "unsure")
        super().__init__(checkpoint, lambda read: (np.zeros((len(read), A), np.float32), read[:, -1]))


def test_a_persons_actions_replace_the_plans_of_their_steps() -> None:
    made = planned()
    data = replace(
        made.data, actions=-np.arange(len(made.plans), dtype=np.float32)[:, None].repeat(A, axis=1)
    )
    person = np.zeros(len(made.plans), dtype=bool)
    person[[6, 7, 20, 21, 22]] = True  # 7 is the last step of an episode
    plans = with_person(made.plans, data, person)
    np.testing.assert_array_equal(plans[~person], made.plans[~person])
    for row, count in ((6, 2), (7, 1), (20, 3), (21, 2), (22, 1)):
        np.testing.assert_array_equal(plans[row, 1, :count, 0], -np.arange(row, row + count))
        np.testing.assert_array_equal(plans[row, :, count:], made.plans[row, :, count:])


def test_steps_of_a_person_count_several_times() -> None:
    made = planned()
    person = np.arange(len(made.plans)) == 5
    assert replace(made, person=person).weighted(np.array([4, 5, 6]), 3).tolist() == [0, 1, 1, 1, 2]
    assert made.weighted(np.array([4, 5]), 3).tolist() == [0, 1]
    scales = FeatureScales(*(np.ones(size, np.float32) for size in (3, 3, 3, 1, 1, A, A)))
    once = recorded_examples(made, [1, 2], scales, 1)
    more = recorded_examples(replace(made, person=person), [1, 2], scales, 1, 3)
    assert len(more) - len(once) == 2 * AGES
