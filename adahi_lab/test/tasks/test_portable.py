from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.tasks.portable import bell_noise, sine_of_small


def test_the_sine_is_a_sine() -> None:
    angle = np.linspace(-0.5, 0.5, 1001)
    np.testing.assert_allclose(sine_of_small(angle), np.sin(angle), rtol=0.0, atol=1e-12)


def test_the_noise_has_mean_0_and_variance_1_and_no_correlation() -> None:
    noise = bell_noise(np.random.default_rng(0).random((100_000, 8)))
    assert noise.shape == (100_000, 2)
    np.testing.assert_allclose(noise.mean(axis=0), 0.0, atol=0.02)
    np.testing.assert_allclose(np.cov(noise.T), np.eye(2), atol=0.02)
    assert np.abs(noise).max() <= 2.0 * np.sqrt(3.0)


@pytest.mark.parametrize("shape", [(3, 5), (8,)])
def test_uniform_draws_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="uniforms: shape"):
        bell_noise(np.zeros(shape))
