# SPDX-License-Identifier: Apache-2.0
"""The peers' packages: each peer has a folder of its own in the user's cache, never in .venv.

    export PYTHONPATH=$(.venv/bin/python -m adahi_ros.lab.peers.environments NAME)
    .venv/bin/python -m adahi_ros.lab.peers.NAME --help

`PEERS` names every package of a peer with its version, but for those that this project has anyway,
numpy and torch among them. Nothing is installed that is not named there.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Annotated

import typer

PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
FLASK = (
    "flask==3.1.3",
    "werkzeug==3.1.9",
    "itsdangerous==2.2.0",
    "click==8.5.1",
    "blinker==1.9.0",
    "requests==2.34.2",
    "urllib3==2.8.0",
    "certifi==2026.10.18",
    "charset-normalizer==3.5.2",
    "idna==3.20",
)
PEERS: dict[str, tuple[str, ...]] = {
    "flask_json": FLASK,
    "flask_waitress": (*FLASK, "waitress==3.0.2"),
    "lerobot_grpc": (
        "lerobot==0.4.4",
        # As `lerobot[async]` has them.
        "grpcio==1.73.1",
        "protobuf==6.31.1",
        "draccus==0.10.0",
        "accelerate==1.15.0",
        "av==15.1.0",
        "datasets==4.8.5",
        "deepdiff==8.6.2",
        "diffusers==0.35.2",
        "huggingface_hub==0.35.3",
        "jsonlines==4.0.0",
        "opencv-python-headless==4.12.0.88",
        "pyserial==3.5",
        "termcolor==3.3.0",
        "torchvision==0.28.0",  # of torch 2.13, which LeRobot does not ask for yet
        # What these import.
        "certifi==2026.10.18",
        "charset-normalizer==3.5.2",
        "dill==0.4.1",
        "httpx==0.28.1",
        "idna==3.20",
        "mergedeep==1.3.4",
        "multiprocess==0.70.19",
        "orderly-set==5.5.0",
        "pandas==2.3.3",
        "pyarrow==26.0.1",
        "pytz==2026.6",
        "pyyaml-include==1.4.1",
        "requests==2.34.2",
        "toml==0.10.2",
        "tqdm==4.70.1",
        "typing-inspect==0.9.0",
        "urllib3==2.8.0",
        "xxhash==4.1.0",
    ),
    "openpi_websocket": (
        "openpi-client==0.1.2",
        "msgpack==1.2.4",
        "websockets==15.0.1",
        # What its broker of chunks imports.
        "dm-tree==0.1.10",
        "absl-py==2.5.1",
        "attrs==26.1.0",
        "wrapt==2.5.2",
    ),
}


class EnvironmentMissingError(RuntimeError):
    """A peer that cannot run here; the message says why."""


def folder(name: str) -> Path:
    """Return where a peer's packages are, or would be.

    Raises:
        ValueError: no such peer.
    """
    if name not in PEERS:
        raise ValueError(f"peer: {name!r}, must be one of {', '.join(PEERS)}")
    made_for = (*PEERS[name], sys.implementation.cache_tag, sysconfig.get_platform())
    digest = hashlib.sha256(repr(made_for).encode()).hexdigest()[:12]
    root = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return root / "adahi_ros" / "peers" / f"{name}-{digest}"


def variables(packages: Path) -> dict[str, str]:
    """Return the environment variables of a process that uses a folder of packages."""
    paths = [str(packages), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def environment(name: str) -> Path:
    """Return the folder of a peer's packages, for PYTHONPATH, and install them where that has not been done.

    Raises:
        ValueError: no such peer.
        EnvironmentMissingError: they cannot be had here, or do not work beside this project's.
    """
    packages = folder(name)
    if packages.is_dir():
        return packages
    packages.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=packages.parent) as scratch:
        partial = Path(scratch) / "packages"
        _run(
            f"{name}: cannot install its packages",
            [*PIP, "--target", str(partial), *PEERS[name]],
            dict(os.environ),
        )
        _run(
            f"{name}: its packages do not work here",
            [sys.executable, "-m", f"{__package__}.{name}", "--help"],
            variables(partial),
        )
        if not packages.is_dir():  # another process may have been faster
            partial.rename(packages)
    return packages


def _run(trouble: str, command: list[str], env: dict[str, str]) -> None:
    """Run a command.

    Raises:
        EnvironmentMissingError: it fails; the message is the trouble and the last that it said.
    """
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip() or f"exit {done.returncode}").splitlines()[-1]
        raise EnvironmentMissingError(f"{trouble} ({last})")


def main(name: Annotated[str, typer.Argument(help="The peer.")]) -> None:
    """Print the folder of a peer's packages; install them first where that has not been done."""
    try:
        print(environment(name))
    except (ValueError, EnvironmentMissingError) as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    typer.run(main)
