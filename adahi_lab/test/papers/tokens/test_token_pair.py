"""Methods of papers on the shipped pair of token policies: what their episodes and the test clock count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test.papers.token_lines import CHUNK, EPISODES, FOLDER, LINES, SEED, STEP, TASK, played

from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.methods.methods import METHODS, for_task
from adahi_lab.papers.tokens.observed_chunks import (
    load_token_policy,
    some_chunks,
    success_of_chunks,
)
from adahi_lab.papers.tokens.token_pair import DRAFT_S, Chunks, given, kilobytes, on_one_target
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_ros.core.assets import asset

TARGET = "target alone"


@pytest.fixture(scope="module")
def pair() -> tuple[TokenPolicy, TokenPolicy]:
    return load_token_policy(FOLDER / "draft"), load_token_policy(FOLDER / "target")


def test_the_target_alone_reads_each_token_of_an_action_by_a_pass() -> None:
    for group in (STEP, CHUNK):
        made = played(LINES[group, TARGET])
        assert (made.passes, made.drafted, made.kept) == (4.0, 0.0, None)


def test_compressed_tokens_end_a_chunk_before_its_most_tokens() -> None:
    folder = asset("checkpoints/metaworld/tokens_fast")
    own, parallel, judged = (
        played(LINES[CHUNK, name], folder)
        for name in (TARGET, "parallel decoding (PD-VLA)", "speculative decoding, rest by target")
    )
    chunk = load_token_policy(folder / "target").codec
    assert chunk.end is not None
    assert 0.0 < own.passes < chunk.codebooks / chunk.chunk_length
    assert parallel.success == own.success
    assert judged.passes < own.passes
    assert judged.kept is not None
    assert 0.0 < judged.kept <= 8 * judged.drafted < chunk.codebooks
    with pytest.raises(ValueError, match=r"^tokens: 'fast', must have one for each entry of an action$"):
        played(LINES[STEP, TARGET], folder)


def test_a_draft_that_reads_the_goal_saves_more_passes() -> None:
    blind, reads = (
        played(LINES[CHUNK, f"speculative decoding, rest by draft{which}"]) for which in ("", ", goal read")
    )
    assert reads.passes < blind.passes
    assert reads.drafted == blind.drafted
    folders = FOLDER, given(TASK, FOLDER)[1]
    assert len({load_token_policy(folder / "target").digest for folder in folders}) == 1


def test_no_robot_of_the_task_itself_may_read_the_goal() -> None:
    _, folder = given(TASK, FOLDER)
    with pytest.raises(ValueError, match=r"^draft: reads a goal, which this task tells to the target alone"):
        Comparison.of_folder(TASK, folder, SEED).bench()


def test_a_chunks_draft_reads_the_goal_that_the_target_reads(pair: tuple[TokenPolicy, TokenPolicy]) -> None:
    task, folder = given(TASK, FOLDER)
    draft, target = load_token_policy(folder / "draft"), pair[1]
    for_draft, for_target = some_chunks(task, draft, target, 2, 1, SEED)[0]
    goal = draft.signature.condition(for_draft)
    np.testing.assert_array_equal(goal, target.signature.condition(for_target))
    assert goal.any()


def test_each_line_has_a_method_of_the_evaluation() -> None:
    methods = [for_task(line.method, TASK, FOLDER) for line in LINES.values() if line.method]
    assert all(METHODS[method] for method in methods)


def test_the_clock_of_speculation_is_that_of_its_passes(chunks: Chunks) -> None:
    found = on_one_target(chunks)
    assert found["alone"].time == pytest.approx(4.0)
    plain = found["speculative"]
    assert plain.time == pytest.approx(plain.passes * (1.0 + 4 * DRAFT_S), abs=0.1)
    assert plain.time < 4.0


def test_success_of_chunks_is_that_of_the_evaluation(pair: tuple[TokenPolicy, TokenPolicy]) -> None:
    own = played(LINES[CHUNK, TARGET])
    found = success_of_chunks(TASK, *pair, EPISODES, SEED)
    np.testing.assert_array_equal(found, own.success)
    assert len(some_chunks(TASK, *pair, 2, 5, SEED)) == 5


def test_only_policies_of_tokens_are_loaded() -> None:
    with pytest.raises(ValueError, match=r"/ball/draft: CodePolicy, must emit tokens$"):
        load_token_policy(asset("checkpoints/ball") / "draft")


def test_weights_count_where_no_export_is_shipped(tmp_path: Path) -> None:
    (tmp_path / "target.safetensors").write_bytes(bytes(2000))
    assert kilobytes(["target.onnx"], tmp_path, 0) == 2.0
