# SPDX-License-Identifier: Apache-2.0
"""Shared by the peers: the command line, the control loop, its inputs and outputs.

A peer is a way to query a remote policy for every action. Each is one program beside this file, or ours,
`lab/nodes/adahi_dds.py`. It runs with its packages (`environments.py`) on PYTHONPATH:

    python -m MODULE serve --address A --port P --checkpoint DIR/target
    python -m MODULE drive --address A --port P --checkpoint DIR/draft --observations FILE.safetensors \
        --calls N --out FILE.json

and consists of a `Server` class, a `Client` class, and a call of `peer`; a file in config/peers lists its
packages.

The conditions are the same for all. A call is the request of one step, from the draft to the action. Every
peer gets the same precomputed window, goal and draft, and sends all of them. Every server verifies the draft
(`DraftVerifier`, or ours in its node) and replies with actions, accepted codes and its compute time. Every
client makes an array of the actions, which is checked. Only encoding and transport differ.
"""

from __future__ import annotations

import gc
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Protocol

import numpy as np
import typer
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from adahi_lab.figures import Figures
from adahi_lab.link.link_commands import CommandedLink
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy
from adahi_ros.server.engine import check_request
from adahi_ros.server.verifier import TargetVerifier

BACKEND = "onnxruntime"
FIRST_CONNECTION_S = 30.0
PAUSE_S = 0.1


@dataclass(frozen=True)
class Observations:
    """The inputs of a remote policy at N control steps of one robot.

    Attributes:
        windows: (N, H, O) float32.
        goals: (N, G) float32.
        codes: (N, codebooks) int64, drafted.
        counts: (N, codebooks, K) uint16, the distributions of the samples (`counted`).
    """

    windows: np.ndarray
    goals: np.ndarray
    codes: np.ndarray
    counts: np.ndarray

    def save(self, path: Path) -> None:
        """Write a safetensors file."""
        save_file({field: np.ascontiguousarray(values) for field, values in vars(self).items()}, path)

    @classmethod
    def load(cls, path: Path, calls: int) -> Observations:
        """Read the first steps that `save` wrote.

        Raises:
            ValueError: no such file, or too few steps in it.
        """
        try:
            whole = cls(**load_file(path))
        except (OSError, SafetensorError, TypeError) as error:
            raise ValueError(f"observations: {path}, must be a file of windows ({error})") from error
        if calls > len(whole.windows):
            raise ValueError(f"calls: {calls}, must be at most {len(whole.windows)}, the windows in {path}")
        return cls(**{field: values[:calls] for field, values in vars(whole).items()})


@dataclass(frozen=True)
class Call:
    """One request to the remote policy.

    Attributes:
        start_s: when the robot had its window and its draft, on this machine's monotonic clock.
        ms: from then until the robot had its checked action, or the timeout.
        compute_ms: as measured by the server, from the decoded request to the reply before encoding; None
            without a reply.
        ok: whether there was a reply.
    """

    start_s: float
    ms: float
    compute_ms: float | None
    ok: bool


class Server(Protocol):
    """Replies with its target policy."""

    def serve(self, address: str, port: int, ready: Callable[[], None]) -> None:
        """Listen, call `ready`, reply forever."""


class Client(ABC):
    """Sends requests to a server, one at a time.

    Attributes:
        failures: exceptions of `connect` and `ask` for failures of the server or the link.
    """

    failures: tuple[type[Exception], ...]

    @abstractmethod
    def connect(self) -> None:
        """Connect to the server."""

    @abstractmethod
    def ask(
        self, window: np.ndarray, goal: np.ndarray, codes: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Return the action chunk (W, A) and the milliseconds that the server computed for it.

        Args:
            window: (H, O) float32.
            goal: (G,) float32.
            codes: (codebooks,) int64, of the draft.
            counts: (codebooks, K) uint16, the draft's distributions.
        """

    def rest(self, duration_s: float) -> None:
        """Wait for the next control period as a robot's program does with this client."""
        time.sleep(duration_s)

    @abstractmethod
    def close(self) -> None:
        """Close any connection without waiting for the server."""


MakeServer = Callable[[Policy], Server]
MakeClient = Callable[[str, int, float, Policy], Client]


class DraftVerifier:
    """Checks drafts and verifies them with the target policy, as the verifier's node does."""

    def __init__(self, policy: Policy) -> None:
        self.signature = policy.signature
        self._verifier = TargetVerifier(policy)
        self._draws = np.random.default_rng(0)
        self._draws_shape = (1, policy.draws, 2)

    def verify(self, window: np.ndarray, goal: np.ndarray, codes: np.ndarray, counts: np.ndarray) -> Verdict:
        """Return the verdict (M = 1) on the arguments of `Client.ask`; integers may be of any type.

        Raises:
            RequestError: the request is refused.
        """
        acceptance = self._verifier.acceptance
        request = check_request(self.signature, acceptance, window, goal, codes, counts.ravel())
        return self._verifier.verify(request, self._draws.random(self._draws_shape))


def drive(
    client: Client,
    observations: Observations,
    period_s: float,
    check: Callable[[np.ndarray], None],
    clock: Callable[[], float] = time.monotonic,
    before: Callable[[int], None] = lambda index: None,
) -> list[Call]:
    """Ask about every window in order, one per control period; a late reply delays the next calls.

    A failed call is recorded; the next one reconnects within its own time.

    Args:
        client: already connected.
        observations: of N steps.
        period_s: between the starts of two calls, at least.
        check: raises ValueError at invalid chunks (1, W, A); counts as part of the call.
        clock: seconds.
        before: called before each call with the number of earlier ones.

    Raises:
        ValueError: from `check`.
    """
    calls: list[Call] = []
    connected = True
    due = clock()
    for requested in zip(*vars(observations).values(), strict=True):
        client.rest(max(0.0, due - clock()))
        before(len(calls))
        start = clock()
        try:
            if not connected:
                client.connect()
                connected = True
            chunk, compute_ms = client.ask(*requested)
            check(chunk[None])
        except client.failures:
            calls.append(Call(start, 1e3 * (clock() - start), None, False))
            client.close()
            connected = False
        else:
            calls.append(Call(start, 1e3 * (clock() - start), compute_ms, True))
        due = max(due + period_s, clock())
    client.close()
    return calls


def connect_first(
    client: Client,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Connect, with retries for a while: routes and radios need time to come up.

    Raises:
        TimeoutError: no connection.
    """
    give_up = clock() + FIRST_CONNECTION_S
    while True:
        try:
            return client.connect()
        except client.failures as error:
            client.close()
            if clock() > give_up:
                raise TimeoutError(f"no server after {FIRST_CONNECTION_S:g} s ({error})") from error
            sleep(PAUSE_S)


class LinkWatch:
    """The emulated link of the driver, if any: cuts it, and counts its traffic."""

    def __init__(self, cut_at: int, cut_s: float) -> None:
        self._link = CommandedLink()
        self._cut_at, self._cut_s = cut_at, cut_s
        self._first: tuple[int, int] | None = None
        self._cut: float | None = None

    def before(self, index: int) -> None:
        """Cut the link if it is due before this call."""
        if index == 0:
            self._first = self._link.carried()
        if index == self._cut_at and self._first is not None:
            self._link.cut(self._cut_s)
            self._cut = time.monotonic()

    def record(self) -> Figures:
        """Return the time of the cut, on the clock of the calls, and the bytes since the first call."""
        now = self._link.carried()
        if now is None or self._first is None:
            return {}
        up, down = (after - before for after, before in zip(now, self._first, strict=True))
        return {"cut_start_s": self._cut, "bytes_up": up, "bytes_down": down}


def _loaded(checkpoint: Path) -> Policy:
    """Load a policy and let it propose once, because the first time takes longer."""
    try:
        policy = load_policy(checkpoint, BACKEND)
    except CheckpointError as error:
        raise typer.BadParameter(str(error), param_hint="--checkpoint") from None
    policy.propose(policy.signature.nothing(), np.zeros((1, policy.draws)))
    return policy


def freeze_garbage() -> None:
    """Freeze the garbage collector's current objects, as our nodes do."""
    gc.collect()
    gc.freeze()


def peer(name: str, make_server: MakeServer | None, make_client: MakeClient) -> None:
    """Run a peer's command line; without a server if that is a separate program."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

    if make_server is not None:

        @app.command("serve")
        def serve_command(
            address: Annotated[str, typer.Option(help="To listen at.")],
            port: Annotated[int, typer.Option(min=1, max=65535)],
            checkpoint: Annotated[Path, typer.Option(help="DIR/NAME of the target policy.")],
        ) -> None:
            """Reply until SIGTERM; prints `ready` when it listens."""
            server = make_server(_loaded(checkpoint))
            freeze_garbage()
            server.serve(address, port, lambda: print("ready", flush=True))

    app.callback()(lambda: None)  # a single command keeps its name

    @app.command("drive")
    def drive_command(
        address: Annotated[str, typer.Option(help="Of the server.")],
        port: Annotated[int, typer.Option(min=1, max=65535)],
        checkpoint: Annotated[Path, typer.Option(help="DIR/NAME of the draft policy.")],
        observations: Annotated[Path, typer.Option(help="File of windows.")],
        calls: Annotated[int, typer.Option(min=1, help="How many windows to ask about.")],
        out: Annotated[Path, typer.Option(help="JSON file to write.")],
        period_s: Annotated[float, typer.Option("--period_s", min=0.0, help="Control period.")] = 0.05,
        timeout_s: Annotated[float, typer.Option("--timeout_s", min=1e-3, help="Timeout of a call.")] = 1.0,
        cut_at: Annotated[
            int, typer.Option("--cut_at", help="Cut the emulated link before this call; -1 for never.")
        ] = -1,
        cut_s: Annotated[float, typer.Option("--cut_s", min=0.0, help="For so long.")] = 0.5,
    ) -> None:
        """Ask about one window per control period and record the time of each call."""
        try:
            requested = Observations.load(observations, calls)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
        draft = _loaded(checkpoint)
        client = make_client(address, port, timeout_s, draft)
        link = LinkWatch(cut_at, cut_s)
        freeze_garbage()
        try:
            connect_first(client)
        except TimeoutError as error:
            raise SystemExit(f"error: {address}:{port}: {error}") from None
        made = drive(client, requested, period_s, draft.check, before=link.before)
        record = {"name": name, "calls": [asdict(call) for call in made], **link.record()}
        out.write_text(json.dumps(record, indent=1) + "\n")

    app()
