from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.tasks.portable import bell_noise


@pytest.mark.parametrize("shape", [(3, 5), (8,)])
def test_uniform_draws_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="uniforms: shape"):
        bell_noise(np.zeros(shape))
