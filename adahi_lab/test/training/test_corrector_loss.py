"""The loss of a corrector: what costs less, and what counts more."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from adahi_lab.training.corrector_loss import corrector_loss


@pytest.mark.parametrize(("beta", "times"), [(0.0, 1 / 25), (0.5, 1 / 5), (1.0, 1.0)])
def test_the_larger_beta_the_more_counts_what_is_hard_to_foresee(beta: float, times: float) -> None:
    wanted = torch.ones(2, 1)
    correction = torch.zeros(2, 1, requires_grad=True)
    log_variance = torch.tensor([0.0, np.log(25.0)])
    corrector_loss(correction, log_variance, wanted, beta).backward()
    assert correction.grad is not None
    sure, unsure = (-correction.grad[:, 0] - 0.25).tolist()  # without the share of the mean absolute error
    assert unsure == pytest.approx(times * sure)
