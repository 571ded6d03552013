"""Methods of papers on the shipped pair of token policies: what their episodes and the test clock count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from adahi_lab.decoding.observed_chunks import (
    load_token_policy,
    observed_chunks,
    some_chunks,
    success_of_chunks,
)
from adahi_lab.decoding.token_pair import DRAFT_S, GROUPS, Line, Played, kilobytes, play, simulated
from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.methods.methods import METHODS, for_task
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_ros.core.assets import asset

TASK, SEED, EPISODES = "metaworld", 11, evaluation_episodes(2)
LINES = {(group.name, line.name): line for group in GROUPS for line in group.lines}
STEP, CHUNK, PREFIX = (group.name for group in GROUPS[:3])
TARGET = "target alone"


@pytest.fixture(scope="module")
def folder() -> Path:
    return asset("checkpoints/metaworld/tokens")


@pytest.fixture(scope="module")
def pair(folder: Path) -> tuple[TokenPolicy, TokenPolicy]:
    return load_token_policy(folder / "draft"), load_token_policy(folder / "target")


def played(folder: Path, line: Line) -> Played:
    method = for_task(line.method, TASK, folder)
    return play(line, method, Comparison.of_folder(TASK, folder, SEED), EPISODES, lambda: None)


def test_the_target_alone_reads_each_token_of_an_action_by_a_pass(folder: Path) -> None:
    for group in (STEP, CHUNK):
        made = played(folder, LINES[group, TARGET])
        assert (made.passes, made.drafted, made.kept) == (4.0, 0.0, None)


@pytest.mark.parametrize("name", ["speculative decoding", "Spec-VLA, 9 bins"])
def test_drafts_of_an_action_save_passes(folder: Path, name: str) -> None:
    made = played(folder, LINES[STEP, name])
    assert 1.0 <= made.passes < 4.0
    assert made.drafted == 4.0
    assert made.kept is not None
    assert 0.0 < made.kept < 4.0


def test_each_part_of_kerv_saves_passes(folder: Path) -> None:
    names = ("speculative decoding", *(f"KERV, its {part} alone" for part in ("threshold", "filter")))
    exact, *parts = (played(folder, LINES[STEP, name]).passes for name in names)
    both = played(folder, LINES[STEP, "KERV"]).passes
    assert all(both < passes < exact for passes in parts)
    assert 1.0 <= played(folder, LINES[STEP, "KERV, filter at every step"]).passes < both


def test_each_line_has_a_method_of_the_evaluation(folder: Path) -> None:
    methods = [METHODS[for_task(line.method, TASK, folder)] for line in LINES.values() if line.method]
    assert [method.proposer_arguments for method in methods if method.proposer == "tool_path"] == [
        {},
        {"skipped": 0},
        {"skipped": 1_000_000, "above": 0.0},
    ]


def test_a_round_of_wisv_decides_some_actions_of_a_chunk(folder: Path) -> None:
    plain, wisv = (played(folder, LINES[PREFIX, name]) for name in ("speculative decoding", "WISV"))
    assert plain.kept is not None
    assert wisv.kept is not None
    assert plain.kept < wisv.kept
    assert wisv.passes < plain.passes < 4.0
    assert 4.0 < wisv.drafted < plain.drafted < 32.0  # a chunk is drafted for each round


def test_parallel_decoding_does_what_the_target_does(folder: Path) -> None:
    own, parallel = (played(folder, LINES[CHUNK, name]) for name in (TARGET, "parallel decoding (PD-VLA)"))
    assert parallel.success == own.success
    assert parallel.requests == own.requests
    assert 0.0 < parallel.passes < own.passes


def test_compressed_tokens_end_a_chunk_before_its_most_tokens() -> None:
    folder = asset("checkpoints/metaworld/tokens_fast")
    own, parallel, judged = (
        played(folder, LINES[CHUNK, name])
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
        played(folder, LINES[STEP, TARGET])


def test_the_clock_has_each_way_faster_than_the_target(pair: tuple[TokenPolicy, TokenPolicy]) -> None:
    seen = observed_chunks(TASK, *pair, 2, SEED)[:3]
    found = simulated(pair, [pair[0], pair[0]], seen)
    assert found["alone"].time == pytest.approx(4.0)
    assert found.keys() == {line.way for line in GROUPS[3].lines}
    assert all(each.time < 4.0 for name, each in found.items() if name != "alone")
    plain = found["speculative"]
    assert plain.time == pytest.approx(plain.passes * (1.0 + 4 * DRAFT_S), abs=0.1)
    assert found["CoSine"].runs == 1.0


def test_success_of_chunks_is_that_of_the_evaluation(
    folder: Path, pair: tuple[TokenPolicy, TokenPolicy]
) -> None:
    own = played(folder, LINES[CHUNK, TARGET])
    found = success_of_chunks(TASK, *pair, EPISODES, SEED)
    np.testing.assert_array_equal(found, own.success)
    assert len(some_chunks(TASK, *pair, 2, 5, SEED)) == 5


def test_only_policies_of_tokens_are_loaded() -> None:
    with pytest.raises(ValueError, match=r"/ball/draft: CodePolicy, must emit tokens$"):
        load_token_policy(asset("checkpoints/ball") / "draft")


def test_memory_is_that_of_the_files(folder: Path) -> None:
    draft, target = ((folder / f"{name}.onnx").stat().st_size for name in ("draft", "target"))
    assert kilobytes(["target.onnx", "draft.onnx"], folder, 0) == (draft + target) / 1e3
    assert kilobytes(["packed"], folder, 7000) == 7.0
    assert kilobytes(["tokenizer"], folder, 0) > 0.0  # with any suffix


def test_weights_count_where_no_export_is_shipped(tmp_path: Path) -> None:
    (tmp_path / "target.safetensors").write_bytes(bytes(2000))
    assert kilobytes(["target.onnx"], tmp_path, 0) == 2.0
