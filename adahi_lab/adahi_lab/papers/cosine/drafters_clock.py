# SPDX-License-Identifier: Apache-2.0
"""CoSine in the table of token policies: specialised drafters, by a test clock."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from adahi_lab.papers.cosine.drafters import KINDS, train_drafters
from adahi_lab.papers.cosine.serving import COSINE, DraftedText, Service
from adahi_lab.papers.cosine.serving_clock import PolicyDrafts, serve
from adahi_lab.papers.tokens.observed_chunks import by_robot, load_token_policy
from adahi_lab.papers.tokens.token_pair import DRAFT_S, Chunks, Simulated, check_own

DRAFTERS = "drafters"


def ways(chunks: Chunks) -> dict[str, Simulated]:
    """Return CoSine, with drafts that are trained where they are missing; see `Clock`.

    A pass and a drafted token last as long for any number of robots.
    """
    folder, target = chunks.out / DRAFTERS, chunks.target
    if not folder.is_dir():
        unfinished = folder.with_suffix(".partial")
        command = f"python -m adahi_lab.papers.cosine.table drafters {chunks.task} {chunks.folder} OUT"
        train_drafters(chunks.task, chunks.folder, unfinished, 240, command, print)
        unfinished.rename(folder)
    drafters = [load_token_policy(folder / f"draft_{kind}") for kind in range(KINDS)]
    texts = [[PolicyDrafts(drafters, target, *each) for each in own] for own in by_robot(chunks.seen, target)]
    given: list[list[DraftedText]] = [list(own) for own in texts]
    free = Service(len(drafters), DRAFT_S, 0.0, 1.0, 0.0)
    made = serve(given, replace(COSINE, selected=len(drafters)), free)
    check_own(made.chunks, [text for own in texts for text in own])
    actions, count = target.codec.chunk_length, len(made.chunks)
    time = float(np.mean(made.latencies_s)) / actions
    return {"CoSine": Simulated(time, made.passes / count / actions, 1.0, made.accepted / made.passes)}
