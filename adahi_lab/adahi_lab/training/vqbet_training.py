# SPDX-License-Identifier: Apache-2.0
"""Training of the tokenizer and of the policies on it: one loop, two losses.

Every step draws its own batch from (seed, step), so a stopped and resumed run ends with the same weights as
an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.training.fitting import FitConfig, Run, digest_of, fit, input_moments, seeded, sizes_of
from adahi_lab.training.step_dataset import Moments, action_chunks, step_goals, window_indices
from adahi_lab.training.tokenizer import ActionTokenizer, TokenizerConfig
from adahi_ros.policies.vqbet.vqbet_network import VQBeT
from adahi_ros.policies.vqbet.vqbet_sizes import VQBeTConfig

PRIMARY_WEIGHT = 5.0
SECONDARY_WEIGHT = 0.5


def _demonstrated(logits: Tensor, codes: Tensor) -> Tensor:
    return codes


@torch.no_grad()
def _sampled(logits: Tensor, codes: Tensor) -> Tensor:
    return torch.distributions.Categorical(logits=logits).sample()


OFFSET_CODES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "demonstrated": _demonstrated,  # codes of the demonstrated action
    "sampled": _sampled,  # codes drawn by the policy, as in VQ-BeT's official code
}


@dataclass(frozen=True)
class CodeFitConfig(FitConfig):
    """How to train a policy of codes.

    Attributes:
        offset_weight: w of VQ-BeT's loss.
        focal_gamma: of the codes' focal loss. VQ-BeT's 2 leaves the distributions flatter than the
            demonstrations', 0 (cross-entropy) does not.
        offset_codes: codes for the offset's training, a key of `OFFSET_CODES`.

    Raises:
        ValueError: a value is out of range; names field, value and range.
    """

    offset_weight: float = 1.0
    focal_gamma: float = 2.0
    offset_codes: str = "demonstrated"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("offset_weight", "focal_gamma"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ValueError(f"fit.{name}: {getattr(self, name)}, must be finite and not negative")
        if self.offset_codes not in OFFSET_CODES:
            raise ValueError(
                f"fit.offset_codes: {self.offset_codes!r}, must be one of {', '.join(OFFSET_CODES)}"
            )


def train_tokenizer(
    data: Trajectories, config: TokenizerConfig, fit_config: FitConfig, run: Run
) -> tuple[ActionTokenizer, list[float]]:
    """Train the action tokenizer; return it, frozen, and its losses."""
    moments = Moments.measure(data.actions)
    chunks = torch.from_numpy(action_chunks(data, config.chunk_length))
    units = torch.from_numpy(moments.mean), torch.from_numpy(moments.scale)
    tokenizer = seeded(run.seed, lambda: ActionTokenizer(config, *units))
    losses = fit(
        tokenizer,
        lambda batch: tokenizer.loss(chunks[batch]),
        len(chunks),
        fit_config,
        run,
        {"tokenizer": asdict(config), "data": digest_of(chunks)},
    )
    tokenizer.requires_grad_(False)
    return tokenizer, losses


def focal_loss(logits: Tensor, codes: Tensor, gamma: float) -> Tensor:
    """Focal loss (Lin et al., 2017) of logits (B, K) at codes (B,), mean over B."""
    log_p = F.log_softmax(logits, dim=-1).gather(-1, codes[:, None])[:, 0]
    return (-((1 - log_p.exp()) ** gamma) * log_p).mean()


def policy_loss(
    logits: Tensor,
    offsets: Tensor,
    codes: Tensor,
    offset_codes: Tensor,
    missing: Tensor,
    config: CodeFitConfig,
) -> Tensor:
    """VQ-BeT's loss: our reading of the paper's equation (3).

    If the offset is trained at sampled codes, chunks of one step let it overwrite any sample. Then no gate
    can distinguish good from bad drafts (docs/research/calibration.md).

    Args:
        logits: (B, N, K).
        offsets: (B, N, K, W, A), in units of the action scale.
        codes: (B, N), the tokenizer's codes of the demonstrated chunk.
        offset_codes: (B, N), at which the offset is trained.
        missing: (B, W, A), demonstrated chunk minus that of `offset_codes`, in the same units.
        config: has the offset's weight and the focal loss's gamma.
    """
    gamma = config.focal_gamma
    secondary = sum(
        (focal_loss(logits[:, book], codes[:, book], gamma) for book in range(1, codes.shape[1])),
        start=torch.zeros(()),
    )
    loss = PRIMARY_WEIGHT * focal_loss(logits[:, 0], codes[:, 0], gamma) + SECONDARY_WEIGHT * secondary
    rows = torch.arange(len(codes))[:, None]
    chosen = offsets[rows, torch.arange(codes.shape[1])[None], offset_codes].sum(dim=1)
    return loss + config.offset_weight * F.l1_loss(chosen, missing)


@dataclass(frozen=True)
class Demonstrated:
    """Demonstrations of T steps, as training data for a policy of codes.

    Attributes:
        observations: (T, O).
        goals: (T, G).
        rows: (T, H) int64, the rows of each step's window.
        chunks: (T, W, A) in action units.
        codes: (T, N) int64, of the chunks.
    """

    observations: Tensor
    goals: Tensor
    rows: Tensor
    chunks: Tensor
    codes: Tensor

    @classmethod
    def from_data(cls, data: Trajectories, tokenizer: ActionTokenizer, window_length: int) -> Demonstrated:
        """Return those of some episodes, for windows of H observations."""
        chunks = torch.from_numpy(action_chunks(data, tokenizer.config.chunk_length))
        return cls(
            torch.from_numpy(data.inputs),
            torch.from_numpy(step_goals(data)),
            torch.from_numpy(window_indices(data, window_length)),
            chunks,
            tokenizer.encode(chunks),
        )

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, batch: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the arguments of `windows_loss` for a batch (B,); every observation is an example."""
        steps = self.rows[batch]
        return self.observations[steps], self.goals[batch], self.codes[steps], self.chunks[steps]


def windows_loss(
    model: VQBeT,
    windows: Tensor,
    goals: Tensor,
    codes: Tensor,
    chunks: Tensor,
    table: Tensor,
    config: CodeFitConfig,
) -> Tensor:
    """Return the loss of a network at the last P observations of windows.

    Args:
        model: the network.
        windows: (B, H, O).
        goals: (B, G).
        codes: (B, P, N), of the chunks.
        chunks: (B, P, W, A) in action units.
        table: the tokenizer's, which codes are decoded by.
        config: see `policy_loss`.
    """
    logits, offsets = model.heads(model.features(windows, goals)[:, -codes.shape[1] :].flatten(0, 1))
    codes, chunks = codes.flatten(0, 1), chunks.flatten(0, 1)
    chosen = OFFSET_CODES[config.offset_codes](logits, codes)
    missing = (chunks - table[tuple(chosen.T)]) / model.action_scale
    return policy_loss(logits, offsets / model.action_scale, codes, chosen, missing, config)


def train_policy(
    data: Trajectories,
    tokenizer: ActionTokenizer,
    window_length: int,
    size: dict[str, int],
    fit_config: CodeFitConfig,
    run: Run,
) -> tuple[VQBeT, list[float]]:
    """Train a VQ-BeT on a frozen tokenizer; return it and its losses.

    Args:
        data: demonstrations.
        tokenizer: frozen.
        window_length: H.
        size: `width`, `layers`, `heads`, `head_hidden` of `VQBeTConfig`.
        fit_config: how long and how fast.
        run: seed, saved state and progress.
    """
    config = VQBeTConfig(
        **sizes_of(data, window_length),
        chunk_length=tokenizer.config.chunk_length,
        codebooks=tokenizer.config.codebooks,
        codebook_size=tokenizer.config.codebook_size,
        **size,
    )
    moments = input_moments(Moments.measure(data.inputs), Moments.measure(data.goals))
    model = seeded(run.seed, lambda: VQBeT(config, moments, tokenizer.action_scale))
    lessons = Demonstrated.from_data(data, tokenizer, window_length)
    recipe = {
        "policy": asdict(config),
        "data": digest_of(
            lessons.observations, lessons.goals, lessons.chunks, *tokenizer.state_dict().values()
        ),
    }
    table = torch.from_numpy(tokenizer.freeze().table)
    losses = fit(
        model,
        lambda batch: windows_loss(model, *lessons.at(batch), table, fit_config),
        len(lessons),
        fit_config,
        run,
        recipe,
    )
    return model, losses
