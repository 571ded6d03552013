"""The loss of a corrector: what costs less, and what counts more."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from adahi_lab.training.corrector_loss import corrector_loss


@pytest.mark.parametrize("spread", [0.1, 1.0, 3.0])
def test_the_loss_prefers_the_variance_that_there_is(spread: float) -> None:
    wanted = spread * torch.randn(4000, 1, generator=torch.Generator().manual_seed(1))
    guesses = [np.log(spread**2) + step for step in (-1.0, -0.4, 0.0, 0.4, 1.0)]
    losses = [
        float(corrector_loss(torch.zeros_like(wanted), torch.full((4000,), guess), wanted))
        for guess in guesses
    ]
    assert int(np.argmin(losses)) == 2


def test_a_correction_that_is_nearer_costs_less() -> None:
    wanted, log_variance = torch.ones(10, 2), torch.zeros(10)
    losses = [
        float(corrector_loss(torch.full((10, 2), each), log_variance, wanted)) for each in (0.0, 0.5, 1)
    ]
    assert losses == sorted(losses, reverse=True)


@pytest.mark.parametrize(("beta", "times"), [(0.0, 1 / 25), (0.5, 1 / 5), (1.0, 1.0)])
def test_the_larger_beta_the_more_counts_what_is_hard_to_foresee(beta: float, times: float) -> None:
    wanted = torch.ones(2, 1)
    correction = torch.zeros(2, 1, requires_grad=True)
    log_variance = torch.tensor([0.0, np.log(25.0)])
    corrector_loss(correction, log_variance, wanted, beta).backward()
    assert correction.grad is not None
    sure, unsure = (-correction.grad[:, 0] - 0.25).tolist()  # without the share of the mean absolute error
    assert unsure == pytest.approx(times * sure)
