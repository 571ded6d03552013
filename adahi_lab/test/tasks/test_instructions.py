from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.tasks.instructions import INSTRUCTION_DIM, embedded


def test_a_sentence_has_one_vector_whatever_was_requested_before() -> None:
    vector = embedded("open the drawer")
    assert vector.shape == (INSTRUCTION_DIM,)
    assert vector @ vector == pytest.approx(1.0)
    embedded.cache_clear()
    embedded("close the window")
    np.testing.assert_array_equal(embedded("Open  the Drawer"), vector)
    # The checkpoints that are shipped were told these: another draw would be another language.
    assert np.sign(vector[:8]).tolist() == [1.0, 1.0, 1.0, 1.0, -1.0, -1.0, 1.0, 1.0]


@pytest.mark.parametrize("sentence", ["", "  "])
def test_a_sentence_without_words_is_named(sentence: str) -> None:
    with pytest.raises(ValueError, match=r"sentence: '\s*', must have words"):
        embedded(sentence)


def test_no_one_can_change_what_others_receive() -> None:
    with pytest.raises(ValueError, match="read-only"):
        embedded("open the drawer")[0] = 3.0
