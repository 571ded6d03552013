# SPDX-License-Identifier: Apache-2.0
"""Finetunes a trained VQ-BeT on single actions at single steps, with limited forgetting.

Two means limit forgetting. Each batch has a part of the earlier training data (rehearsal). The caller may
compare `mean_loss` on demonstrations before and after.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from adahi_lab.training.fitting import Run, digest_of, fit
from adahi_lab.training.tokenizer import ActionTokenizer
from adahi_lab.training.vqbet_training import CodeFitConfig, Demonstrated, windows_loss
from adahi_ros.policies.vqbet.vqbet_network import VQBeT

BATCH = 2048  # for evaluation only


@dataclass(frozen=True)
class Actions:
    """Actions to learn, at N steps.

    Attributes:
        windows: (N, H, O).
        goals: (N, G).
        codes: (N, 1, N') int64, of the actions.
        chunks: (N, 1, 1, A) in action units.
    """

    windows: Tensor
    goals: Tensor
    codes: Tensor
    chunks: Tensor

    @classmethod
    def from_windows(
        cls, windows: np.ndarray, goals: np.ndarray, actions: np.ndarray, tokenizer: ActionTokenizer
    ) -> Actions:
        """Return actions (N, A) at windows (N, H, O) and goals (N, G), each with its codes.

        Raises:
            ValueError: a code stands for more than one action.
        """
        if tokenizer.config.chunk_length != 1:
            raise ValueError(
                f"tokenizer.chunk_length: {tokenizer.config.chunk_length}, must be 1: of a reply, the action "
                "of its own step is known alone"
            )
        chunks = torch.from_numpy(np.ascontiguousarray(actions[:, None], dtype=np.float32))
        shown, with_goals = (torch.from_numpy(np.ascontiguousarray(each)) for each in (windows, goals))
        return cls(shown, with_goals, tokenizer.encode(chunks)[:, None], chunks[:, None])

    def __len__(self) -> int:
        return len(self.windows)

    def at(self, batch: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the arguments of `windows_loss` for a batch (B,)."""
        return self.windows[batch], self.goals[batch], self.codes[batch], self.chunks[batch]


def fine_tune(
    model: VQBeT,
    tokenizer: ActionTokenizer,
    old: Demonstrated,
    new: Actions,
    config: CodeFitConfig,
    rehearsal: float,
    run: Run,
) -> tuple[VQBeT, list[float]]:
    """Return a finetuned copy of a network, and its losses.

    Args:
        model: is not changed.
        tokenizer: frozen; of the network.
        old: its earlier training data.
        new: actions to learn, at least one.
        config: how long and how fast, and the loss.
        rehearsal: share of the loss from old demonstrations, 0 to 1; at 1 nothing new is learned.
        run: seed, saved state and progress.
    """
    table = torch.from_numpy(tokenizer.freeze().table)
    learned = copy.deepcopy(model).requires_grad_(True)

    def loss_of(batch: Tensor) -> Tensor:
        of_old, of_new = batch % len(old), batch // len(old)  # one draw gives separate batches of both
        loss = torch.zeros(())
        if rehearsal > 0.0:
            loss = loss + rehearsal * windows_loss(learned, *old.at(of_old), table, config)
        if rehearsal < 1.0:
            loss = loss + (1.0 - rehearsal) * windows_loss(learned, *new.at(of_new), table, config)
        return loss

    recipe = {
        "rehearsal": rehearsal,
        "data": digest_of(
            *(old.observations, old.goals, old.chunks, new.windows, new.goals, new.chunks),
            *model.state_dict().values(),
            *tokenizer.state_dict().values(),
        ),
    }
    losses = fit(learned, loss_of, len(old) * len(new), config, run, recipe)
    return learned.requires_grad_(False), losses


@torch.no_grad()
def mean_loss(
    model: VQBeT, tokenizer: ActionTokenizer, data: Demonstrated | Actions, config: CodeFitConfig
) -> float:
    """Return the training loss of a network over all steps of some data."""
    table = torch.from_numpy(tokenizer.freeze().table)
    total = 0.0
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # the loss may draw codes
        for batch in torch.arange(len(data)).split(BATCH):
            total += len(batch) * windows_loss(model, *data.at(batch), table, config).item()
    return total / len(data)


@torch.no_grad()
def log_likelihood(model: VQBeT, data: Actions) -> float:
    """Return the mean log probability, in nats, that a network gives the codes of actions."""
    total = 0.0
    for batch in torch.arange(len(data)).split(BATCH):
        windows, goals, codes, _ = data.at(batch)
        logits, _ = model(windows, goals)
        each = F.log_softmax(logits, dim=-1).gather(-1, codes[:, 0, :, None])[..., 0]
        total += float(each.sum())
    return total / len(data)
