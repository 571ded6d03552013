# SPDX-License-Identifier: Apache-2.0
"""How long a chunk takes on several machines, by a simulated clock: token by token, or by speculation."""

from __future__ import annotations

from dataclasses import dataclass, field

from adahi_lab.papers.tokens.texts import Text, agreed


@dataclass(frozen=True)
class Machines:
    """Where target and draft run.

    Attributes:
        lanes: instances of the target.
        stages: machines that share an instance.
        layers: of each stage.
        layer_s: duration of a layer, for any number of tokens.
        draft_s: duration of a drafted token.
        link_s: one way between two machines: drafter, first stage, next stage, and back.
        cancels: void runs stop between layers; else they are read to their end.
        shares: what an instance finds out stops the void runs of all, else its own alone.
    """

    lanes: int = 1
    stages: int = 1
    layers: int = 1
    layer_s: float = 1.0
    draft_s: float = 0.1
    link_s: float = 0.0
    cancels: bool = True
    shares: bool = True

    @property
    def pass_s(self) -> float:
        """Duration of a pass, from the first machine to the last."""
        return self.stages * self.layers * self.layer_s + (self.stages - 1) * self.link_s


@dataclass
class Decoded:
    """The work for one chunk.

    Attributes:
        tokens: of the chunk.
        time_s: until the drafter knows all of them.
        passes: that started.
        void: passes that were stopped.
        saved: layers that these did not pass.
    """

    tokens: list[int] = field(default_factory=list)
    time_s: float = 0.0
    passes: int = 0
    void: int = 0
    saved: int = 0


def alone(text: Text, machines: Machines) -> Decoded:
    """Decode token by token, without a draft."""
    back_s = machines.link_s * (machines.stages > 1)  # of a token, to the first stage
    made = Decoded(time_s=2.0 * machines.link_s - back_s)
    while len(made.tokens) < text.length:
        made.tokens.append(text.own(made.tokens)[-1])
        made.passes += 1
        made.time_s += machines.pass_s + back_s
    return made


def speculative(text: Text, batch: int, machines: Machines) -> Decoded:
    """Draft some tokens, wait for the pass over them, and so on (Leviathan et al., 2023)."""
    made = Decoded()
    while len(made.tokens) < text.length:
        run = list(made.tokens)
        while len(run) < min(len(made.tokens) + batch, text.length - 1):
            run.append(text.drafted(run)[0])
            made.time_s += machines.draft_s
        accepted, following = agreed(run, text.own(run))
        made.tokens = [*run[:accepted], following]
        made.passes += 1
        made.time_s += machines.pass_s + 2.0 * machines.link_s
    return made
