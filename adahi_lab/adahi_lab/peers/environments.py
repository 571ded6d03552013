# SPDX-License-Identifier: Apache-2.0
"""The peers' packages: each peer has a separate folder in the user's cache, never in .venv.

    export PYTHONPATH=$(.venv/bin/python -m adahi_lab.peers.environments NAME)
    .venv/bin/python -m adahi_lab.peers.NAME --help

config/peers lists every package of a peer with its version, except those of this project, such as numpy and
torch. No other package is installed.
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

from adahi_ros.core.assets import asset

PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")


def _packages(file: Path) -> tuple[str, ...]:
    """Return what a file of requirements lists."""
    lines = file.read_text().splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


PEERS = {file.stem: _packages(file) for file in sorted(asset("config/peers").glob("*.txt"))}


class EnvironmentMissingError(RuntimeError):
    """A peer cannot run here; the message names the reason."""


def folder(name: str) -> Path:
    """Return the folder of a peer's packages; it need not exist.

    Raises:
        ValueError: no such peer.
    """
    if name not in PEERS:
        raise ValueError(f"peer: {name!r}, must be one of {', '.join(PEERS)}")
    made_for = (*PEERS[name], sys.implementation.cache_tag, sysconfig.get_platform())
    digest = hashlib.sha256(repr(made_for).encode()).hexdigest()[:12]
    root = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return root / "adahi_ros" / "peers" / f"{name}-{digest}"


def variables(*packages: Path) -> dict[str, str]:
    """Return the environment variables of a process that uses folders of packages."""
    paths = [*map(str, packages), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def environment(name: str) -> Path:
    """Return the folder of a peer's packages, for PYTHONPATH; install them if missing.

    Raises:
        ValueError: no such peer.
        EnvironmentMissingError: they cannot be installed here, or conflict with this project's.
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
        EnvironmentMissingError: it fails; the message has the reason and its last output.
    """
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip() or f"exit {done.returncode}").splitlines()[-1]
        raise EnvironmentMissingError(f"{trouble} ({last})")


def main(name: Annotated[str, typer.Argument(help="The peer.")]) -> None:
    """Print the folder of a peer's packages; install them if missing."""
    try:
        print(environment(name))
    except (ValueError, EnvironmentMissingError) as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    typer.run(main)
