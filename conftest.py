"""Fixtures for every room: a toy problem, and checkpoints that are trained on it in a second."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import yaml
from hypothesis import settings

from adahi_lab.calibration.parameter_file import Calibration
from adahi_lab.datasets.trajectories import Trajectories
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.loaded_policies import PLANS, Policies, PolicyFiles
from adahi_lab.tasks import make as make_task
from adahi_lab.tasks.offscreen import choose_renderer
from adahi_lab.tasks.task_interface import Task
from adahi_lab.training.working_folder import locked
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.vqbet.code_policy import ActionDecoder, CodePolicy, Prediction
from adahi_ros.policies.vqbet.vqbet_checkpoint import code_signature
from adahi_ros.protocol.records import Reason, StepRecord

# `test` is one namespace for the tests of both packages. Python would take the standard library's package.
ROOT = Path(__file__).parent
sys.modules["test"] = ModuleType("test")
sys.modules["test"].__path__ = [str(ROOT / "test"), str(ROOT / "adahi_lab/test")]

choose_renderer()  # before a test imports mujoco itself

# Networks this small only lose by being shared out, all the more where pytest-xdist uses every core.
os.environ["OMP_NUM_THREADS"] = "1"

# Whoever starts the tests may have a terminal of any kind, or none, and be at the end of a link.
os.environ["TERM"] = "xterm"
TERMINALS = {"COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}
for name in TERMINALS | {"ADAHI_SERVER_PREFIX", "ADAHI_LINK_CONTROL"}:
    os.environ.pop(name, None)

settings.register_profile("adahi", derandomize=True, deadline=None, database=None)
settings.register_profile("long", max_examples=20_000, deadline=None)  # for hours: see test/fuzz
settings.load_profile("adahi")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes minutes, or one worker would still be at it when the others have nothing left.

    What is tested of every task, is not of one whose library is optional and is not installed.
    """
    items.sort(key=lambda item: item.get_closest_marker("soak") is None)
    missing = [task for task, library in OPTIONAL.items() if find_spec(library) is None]
    for item in items if missing else ():
        for task in set(missing) & set(map(str, getattr(item, "callspec", NO_CALL).params.values())):
            item.add_marker(pytest.mark.skip(reason=f"{task} is optional and is not installed"))


EPISODES = 12
EPISODE_STEPS = 30

OPTIONAL = {  # libraries, by task
    **dict.fromkeys(("metaworld", "metaworld_10", "metaworld_50"), "metaworld"),
    "libero_goal": "libero",
    "ogbench_puzzle": "ogbench",
}
NO_CALL = SimpleNamespace(params={})

DEAF_TO = (signal.SIGINT, signal.SIGTERM)

# What a shell's background ignores would go on to every process that a test starts.
signal.pthread_sigmask(signal.SIG_SETMASK, ())
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
    signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="session")
def deaf() -> Callable[[], None]:
    """A process's `preexec_fn`: it inherits the worst there is, SIGINT and SIGTERM ignored and blocked."""

    def ignore_and_block() -> None:
        for number in DEAF_TO:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, DEAF_TO)

    return ignore_and_block


@pytest.fixture(scope="session", autouse=True)
def _cache_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep exported networks out of the user's cache, and share them among pytest-xdist's workers."""
    base = tmp_path_factory.getbasetemp()
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(run / "cache"))
        yield


@pytest.fixture(scope="session")
def libero_scene(_cache_home: None) -> Path:
    """The folder of LIBERO's scene, converted once for all workers; skips where the library is missing."""
    if find_spec("libero") is None:
        pytest.skip("LIBERO is optional: pip install -r requirements/libero.txt")
    from adahi_lab.tasks.libero.convert import convert
    from adahi_lab.tasks.libero.scene_files import NOTES, scene_folder

    folder = scene_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.parent):
        if not (folder / NOTES).is_file():
            convert(folder)
    return folder


@pytest.fixture(autouse=True)
def _converted(request: pytest.FixtureRequest) -> None:
    """Convert LIBERO's scene before a test of its task."""
    given = getattr(request.node, "callspec", NO_CALL).params.values()
    if any(isinstance(value, str) and value == "libero_goal" for value in given):
        request.getfixturevalue("libero_scene")


def _demonstrations(goal_dim: int) -> Trajectories:
    draw = np.random.default_rng(7)
    steps = EPISODES * EPISODE_STEPS
    observations = 0.1 * draw.normal(size=(EPISODES, EPISODE_STEPS, 6)).cumsum(axis=1)
    goals = draw.normal(size=(EPISODES, goal_dim))
    towards = goals[:, None, :2] if goal_dim else np.zeros((EPISODES, 1, 2))
    actions = 0.3 * np.tanh(towards - observations[:, :, 2:4] - 0.5 * observations[:, :, 4:6])
    return Trajectories(
        "toy",
        observations.reshape(steps, 6).astype(np.float32),
        actions.reshape(steps, 2).astype(np.float32),
        goals.astype(np.float32),
        np.arange(EPISODE_STEPS, steps + 1, EPISODE_STEPS),
    )


@pytest.fixture(scope="session")
def demonstrations() -> Callable[[int], Trajectories]:
    """From goal_dim to 12 episodes of 30 steps: 6 observations, 2 actions, as ball balancing has."""
    return functools.cache(_demonstrations)


@pytest.fixture(scope="session")
def seeing() -> Callable[[str], Task]:
    """From a task's name to the task; skips where its camera has no OpenGL to draw with."""

    def make(name: str) -> Task:
        task = make_task(name)
        try:
            task.observation  # noqa: B018 (a look draws)
        except RuntimeError as error:
            pytest.skip(str(error))
        return task

    return make


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """From arguments to what the command says on stderr, in one line, as it ends with status 2."""
    from adahi_ros.cli import app

    def main(*arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", ["adahi", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            app.main()
        message = capsys.readouterr().err
        assert ended.value.code == 2
        assert message.startswith("adahi: ")
        assert message.count("\n") == 1, message
        return message

    return main


@pytest.fixture(scope="session")
def recipe_of() -> Callable[..., str]:
    """From steps of training to a recipe of tiny networks: of the tokenizer, and by name of each policy."""
    layers = {"draft": {"width": 4, "head_hidden": 8}, "target": {"width": 8, "head_hidden": 16}}

    def write(tokenizer_steps: int, **policy_steps: int) -> str:
        def model(seed: int, steps: int, size: dict[str, int]) -> dict[str, object]:
            return {"seed": seed, "size": size, "fit": {"steps": steps, "batch_size": 64}}

        chunks = {"chunk_length": 1, "codebooks": 2, "codebook_size": 8, "latent_dim": 8, "hidden": 16}
        return yaml.safe_dump(
            {
                "demonstrations": {"episodes": 1, "seed": 0, "action_noise": 0.1},
                "tokenizer": model(1, tokenizer_steps, chunks),
                "window_length": 3,
                "policies": {
                    name: model(2, steps, {"layers": 1, "heads": 2, **layers[name]})
                    for name, steps in policy_steps.items()
                },
            }
        )

    return write


@pytest.fixture(scope="session")
def make_checkpoints(
    tmp_path_factory: pytest.TempPathFactory, demonstrations: Callable[[int], Trajectories]
) -> Callable[..., Path]:
    """From sizes to a directory with a tokenizer and policies `draft` and `target`, a little trained."""

    @functools.cache
    def make(goal_dim: int = 2, chunk_length: int = 1, codebooks: int = 2, seed: int = 0) -> Path:
        from adahi_lab.training.fitting import FitConfig, Run
        from adahi_lab.training.tokenizer import TokenizerConfig
        from adahi_lab.training.vqbet_files import save_policy, save_tokenizer
        from adahi_lab.training.vqbet_training import CodeFitConfig, train_policy, train_tokenizer

        directory = tmp_path_factory.mktemp("checkpoints")
        data = demonstrations(goal_dim)
        config = TokenizerConfig(2, chunk_length, codebooks, codebook_size=8, latent_dim=8, hidden=16)
        tokenizer, _ = train_tokenizer(data, config, FitConfig(25, 64), Run(seed))
        save_tokenizer(directory, tokenizer, {"seed": seed})
        for name, width in (("draft", 4), ("target", 8)):
            size = {"width": width, "layers": 1, "heads": 2, "head_hidden": 8}
            model, _ = train_policy(data, tokenizer, 3, size, CodeFitConfig(10, 64, warmup=0), Run(seed))
            save_policy(directory, name, model, {"seed": seed})
        return directory

    return make


@pytest.fixture(scope="session")
def checkpoints(make_checkpoints: Callable[..., Path]) -> Path:
    """A directory with a tokenizer, `draft` and `target`: H 3, O 6, G 2, N 2, K 8, W 1, A 2."""
    return make_checkpoints()


@pytest.fixture(scope="session")
def exported(checkpoints: Path) -> Path:
    """`checkpoints`, exported before a node has to."""
    for name in ("draft", "target"):
        load_policy(checkpoints / name, "onnxruntime")
    return checkpoints


@pytest.fixture(scope="session")
def files(
    checkpoints: Path, make_checkpoints: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> PolicyFiles:
    """Draft and target, and a target that plans eight actions beside them."""
    folder = tmp_path_factory.mktemp("with_plans") / "policies"
    shutil.copytree(checkpoints, folder)
    shutil.copytree(make_checkpoints(chunk_length=8), folder / PLANS)
    return PolicyFiles(folder, "torch")


@pytest.fixture(scope="session")
def policies(files: PolicyFiles) -> Policies:
    return files.load()


@pytest.fixture(scope="session")
def calibration(policies: Policies) -> Calibration:
    """Thresholds that the scores of these drafts are above in some steps and below in others."""
    thresholds = {"deviation": 0.4, "uncertainty": 0.984, "oracle": 0.2, "random": 0.4}
    return Calibration(
        "ball", policies.draft.digest, policies.target.digest, 0.5, "std", 1.0, 0.6, thresholds
    )


@pytest.fixture(scope="session")
def comparison(files: PolicyFiles, calibration: Calibration) -> Comparison:
    return Comparison("ball", files, calibration, seed=5)


@pytest.fixture(scope="session")
def codes_of() -> Callable[[CodePolicy, np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """From a policy, windows (B, H, O), goals (B, G) and chunks (B, W, A) to the codes (B, N) behind them."""

    def read(policy: CodePolicy, windows: np.ndarray, goals: np.ndarray, chunks: np.ndarray) -> np.ndarray:
        prediction = policy.predict(windows, goals)
        every = np.array(list(np.ndindex((policy.decoder.codebook_size,) * policy.decoder.codebooks)))
        distances = []
        for codes in every:
            tiled = np.tile(codes, (len(windows), 1))
            could = policy.decoder.decode(tiled) + prediction.offset_at(tiled)
            distances.append(np.abs(could[:, : chunks.shape[1]] - chunks).max(axis=(1, 2)))
        assert np.min(distances, axis=0).max() < 1e-5  # every chunk has codes that it was made of
        return every[np.argmin(distances, axis=0)]

    return read


class Faulty(CodePolicy):
    """A policy, but for windows whose newest observation begins with more than 1e3.

    Args:
        policy: for all the others.
        value: that takes the place of something, or is added to it.
        logits: whether it takes the place of the logits there; else it is added to the offsets.
    """

    def __init__(self, policy: CodePolicy, value: float, logits: bool = False) -> None:
        super().__init__(policy.signature, policy.decoder, policy.digest)
        self._policy, self._value, self._logits = policy, value, logits

    def predict(self, windows: np.ndarray, goals: np.ndarray) -> Prediction:
        prediction = self._policy.predict(np.where(np.abs(windows) > 1e3, np.float32(0), windows), goals)
        logits, offsets = prediction.logits.copy(), prediction.offsets.copy()
        bad = windows[:, -1, 0] > 1e3
        if self._logits:
            logits[bad] = self._value
        else:
            offsets[bad] += np.float32(self._value)
        return Prediction(logits, offsets)


@pytest.fixture(scope="session")
def faulty() -> type[Faulty]:
    return Faulty


@pytest.fixture(scope="session")
def step_record() -> Callable[..., StepRecord]:
    """From what is different to a step: verified and accepted unless told otherwise."""

    def make(**changes: object) -> StepRecord:
        values: dict[str, object] = {
            "stamp_ns": 0,
            "robot_id": "robot",
            "episode": 0,
            "step": 0,
            "gate": "deviation",
            "deviation": 1.0,
            "score": 1.0,
            "threshold": 0.5,
            "transmitted": True,
            "verified": True,
            "accepted": (True, True),
            "reason": Reason.NONE,
            "reason_counts": (1, *[0] * (len(Reason) - 1)),
            "message": "",
            "proposer": "draft",
            "draft_action": (0.0, 0.0),
            "planned_action": (),
            "plan_age": -1,
            "plan_left": 0,
            "expected_error": -1.0,
            "requests_pending": 0,
            "action": (0.0, 0.0),
            "draft_ms": 0.1,
            "verify_ms": 1.0,
            "target_compute_ms": 0.2,
            "total_ms": 1.5,
            "request_bytes": 400,
            "response_bytes": 60,
        }
        return StepRecord(**{**values, **changes})  # type: ignore[arg-type]

    return make


class FixedPolicy(CodePolicy):
    """Predicts the same logits (N, K) and offsets (N, K, W, A) whatever it sees; H 2, O 3, G 1.

    The chunk of codes (i, j) is [[i, 10 j], ...], so that codes can be read off an action.
    """

    def __init__(self, logits: np.ndarray, offset: float, chunk_length: int) -> None:
        size = logits.shape[1]
        first, second = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
        table = np.stack([first, 10.0 * second], axis=-1)[:, :, None].repeat(chunk_length, axis=2)
        decoder = ActionDecoder(table.astype(np.float32), np.array([2.0, 4.0], np.float32))
        super().__init__(code_signature(decoder, 2, 3, 1), decoder, "fixed")
        self._logits = logits.astype(np.float32)
        self._offsets = np.full((2, size, chunk_length, 2), offset / 2, np.float32)

    def predict(self, windows: np.ndarray, goals: np.ndarray) -> Prediction:
        batch = len(windows)
        assert windows.shape == (batch, 2, 3)
        assert goals.shape == (batch, 1)
        return Prediction(np.stack([self._logits] * batch), np.stack([self._offsets] * batch))


@pytest.fixture
def fixed_policy() -> Callable[..., FixedPolicy]:
    """From `probabilities` (2, K), and what to add to each action, to a policy that is always so."""

    def make(probabilities: list[list[float]], offset: float = 0.0, chunk_length: int = 1) -> FixedPolicy:
        return FixedPolicy(np.log(np.array(probabilities)), offset, chunk_length)

    return make
