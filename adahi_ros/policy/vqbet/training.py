"""Training of the tokenizer and of the policies on it: one loop, two losses.

Every step draws its own batch from (seed, step), so a run that was stopped and resumed ends with
the weights of one that was not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from adahi_ros.files import parse_json, replacing
from adahi_ros.policy.vqbet.dataset import Moments, action_chunks, step_goals, window_indices
from adahi_ros.policy.vqbet.network import VQBeT, VQBeTConfig
from adahi_ros.policy.vqbet.tokenizer import ActionTokenizer, TokenizerConfig
from adahi_ros.trajectories import Trajectories

PRIMARY_WEIGHT = 5.0
SECONDARY_WEIGHT = 0.5


def _demonstrated(logits: Tensor, codes: Tensor) -> Tensor:
    return codes


@torch.no_grad()
def _sampled(logits: Tensor, codes: Tensor) -> Tensor:
    return torch.distributions.Categorical(logits=logits).sample()


OFFSET_CODES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "demonstrated": _demonstrated,  # those of the action that was demonstrated
    "sampled": _sampled,  # those that the policy draws, as VQ-BeT's official code has it
}


@dataclass(frozen=True)
class FitConfig:
    """How long and how fast to train.

    Attributes:
        steps: optimizer steps.
        batch_size: examples per step.
        learning_rate: AdamW's, after a linear warm-up over `warmup` steps, then a cosine to zero.
        weight_decay: AdamW's.
        offset_weight: w of VQ-BeT's loss; unused by the tokenizer.
        focal_gamma: of the codes' focal loss; unused by the tokenizer. VQ-BeT's 2 leaves the distributions
            flatter than the demonstrations', 0 (cross-entropy) does not.
        offset_codes: at which codes the offset is trained, a key of `OFFSET_CODES`; unused by the tokenizer.

    Raises:
        ValueError: a value is out of range; names field, value and range.
    """

    steps: int
    batch_size: int = 512
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    warmup: int = 50
    offset_weight: float = 1.0
    focal_gamma: float = 2.0
    offset_codes: str = "demonstrated"

    def __post_init__(self) -> None:
        for name, smallest in (("steps", 1), ("batch_size", 2), ("warmup", 0)):
            if getattr(self, name) < smallest:
                raise ValueError(f"fit.{name}: {getattr(self, name)}, must be at least {smallest}")
        for name in ("learning_rate", "weight_decay", "offset_weight", "focal_gamma"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ValueError(f"fit.{name}: {getattr(self, name)}, must be finite and not negative")
        if self.offset_codes not in OFFSET_CODES:
            raise ValueError(
                f"fit.offset_codes: {self.offset_codes!r}, must be one of {', '.join(OFFSET_CODES)}"
            )

    def rate_at(self, step: int) -> float:
        """Return the learning rate of one step."""
        warm = min(1.0, (step + 1) / (self.warmup + 1))
        return self.learning_rate * warm * 0.5 * (1 + float(np.cos(np.pi * step / self.steps)))


@dataclass(frozen=True)
class Run:
    """Where a training run keeps its state, and who is told of its progress.

    Attributes:
        seed: of weights and batches.
        state: file to save to and resume from; None keeps nothing.
        save_every: steps between saves.
        on_step: called with (steps done, loss).
    """

    seed: int
    state: Path | None = None
    save_every: int = 500
    on_step: Callable[[int, float], None] = lambda step, loss: None


def _save_state(path: Path, module: nn.Module, optimizer: torch.optim.AdamW, meta: dict) -> None:
    tensors = {f"model.{name}": tensor.contiguous() for name, tensor in module.state_dict().items()}
    for index, state in optimizer.state_dict()["state"].items():
        for name, tensor in state.items():
            tensors[f"optimizer.{index}.{name}"] = tensor.contiguous()
    with replacing(path) as partial:
        save_file(tensors, partial, metadata={"adahi": json.dumps(meta)})


def _load_state(path: Path, module: nn.Module, optimizer: torch.optim.AdamW, recipe: dict) -> list[float]:
    try:
        with safe_open(path, framework="pt") as file:
            meta = parse_json((file.metadata() or {})["adahi"])
            made_by, losses = meta["recipe"], list(meta["losses"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: not a saved run ({error}); delete it to start anew") from None
    if made_by != recipe:
        raise ValueError(f"{path}: from a run with other settings or data; delete it to start anew")
    module.load_state_dict(
        {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
    )
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, index, field = name.split(".")
            moments.setdefault(int(index), {})[field] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
    return losses


def _digest(*tensors: Tensor) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


def fit(
    module: nn.Module,
    loss_of: Callable[[Tensor], Tensor],
    examples: int,
    config: FitConfig,
    run: Run,
    recipe: dict | None = None,
) -> list[float]:
    """Train a module in place; return the loss of every step.

    Args:
        module: what to train.
        loss_of: from the indices (B,) of a batch to its loss.
        examples: how many there are to draw from.
        config: how long and how fast.
        run: seed, saved state and progress.
        recipe: what else must be the same for a saved state to be resumed.

    Raises:
        ValueError: the saved state is damaged, or of another run.
        RuntimeError: the loss is not finite any more.
    """
    optimizer = torch.optim.AdamW(
        module.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
    )
    recipe = {"fit": asdict(config), "seed": run.seed, "examples": examples, **(recipe or {})}
    losses: list[float] = []
    if run.state is not None and run.state.is_file():
        losses = _load_state(run.state, module, optimizer, recipe)
    module.train()
    with torch.random.fork_rng(devices=[]):
        for step in range(len(losses), config.steps):
            torch.manual_seed(int(np.random.SeedSequence((run.seed, step)).generate_state(1)[0]))
            batch = torch.randint(examples, (config.batch_size,))
            for group in optimizer.param_groups:
                group["lr"] = config.rate_at(step)
            loss = loss_of(batch)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
            if not np.isfinite(losses[-1]):
                raise RuntimeError(f"loss: {losses[-1]} at step {step}; lower fit.learning_rate")
            run.on_step(step + 1, losses[-1])
            if run.state is not None and ((step + 1) % run.save_every == 0 or step + 1 == config.steps):
                _save_state(run.state, module, optimizer, {"recipe": recipe, "losses": losses})
    module.eval()
    return losses


def train_tokenizer(
    data: Trajectories, config: TokenizerConfig, fit_config: FitConfig, run: Run
) -> tuple[ActionTokenizer, list[float]]:
    """Train the action tokenizer; return it, frozen, and its losses."""
    moments = Moments.of(data.actions)
    chunks = torch.from_numpy(action_chunks(data, config.chunk_length))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        tokenizer = ActionTokenizer(config, torch.from_numpy(moments.mean), torch.from_numpy(moments.scale))
    losses = fit(
        tokenizer,
        lambda batch: tokenizer.loss(chunks[batch]),
        len(chunks),
        fit_config,
        run,
        {"tokenizer": asdict(config), "data": _digest(chunks)},
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
    config: FitConfig,
) -> Tensor:
    """VQ-BeT's loss: the paper's equation (3).

    Where the offset is trained at sampled codes, chunks of one step let it overwrite whatever was
    sampled, and no gate can tell a good draft from a bad one (docs/calibration.md).

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


def train_policy(
    data: Trajectories,
    tokenizer: ActionTokenizer,
    window_length: int,
    size: dict[str, int],
    fit_config: FitConfig,
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
        observation_dim=data.observations.shape[1],
        goal_dim=data.goals.shape[1],
        action_dim=data.actions.shape[1],
        window_length=window_length,
        chunk_length=tokenizer.config.chunk_length,
        codebooks=tokenizer.config.codebooks,
        codebook_size=tokenizer.config.codebook_size,
        **size,
    )
    observation, goal = Moments.of(data.observations), Moments.of(data.goals)
    arrays = (observation.mean, observation.scale, goal.mean, goal.scale)
    moments = [*map(torch.from_numpy, arrays), tokenizer.action_scale]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        model = VQBeT(config, *moments)
    observations = torch.from_numpy(data.observations)
    goals = torch.from_numpy(step_goals(data))
    rows = torch.from_numpy(window_indices(data, window_length))
    chunks = torch.from_numpy(action_chunks(data, config.chunk_length))
    codes = tokenizer.encode(chunks)
    table = torch.from_numpy(tokenizer.freeze().table)
    choose = OFFSET_CODES[fit_config.offset_codes]

    def loss_of(batch: Tensor) -> Tensor:
        steps = rows[batch]
        logits, offsets = model.heads(model.features(observations[steps], goals[batch]).flatten(0, 1))
        steps = steps.flatten()
        chosen = choose(logits, codes[steps])
        missing = (chunks[steps] - table[tuple(chosen.T)]) / model.action_scale
        scaled = offsets / model.action_scale
        return policy_loss(logits, scaled, codes[steps], chosen, missing, fit_config)

    recipe = {
        "policy": asdict(config),
        "data": _digest(observations, goals, chunks, *tokenizer.state_dict().values()),
    }
    losses = fit(model, loss_of, len(rows), fit_config, run, recipe)
    return model, losses
