# SPDX-License-Identifier: Apache-2.0
"""A folder that is made beside another one, and replaces it at the end in one move."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

from adahi_lab.training.working_folder import working_in

STATES = "*.training.safetensors"


class StagedFolder:
    """The folder NAME.training beside a folder NAME. After a stop it keeps the states to resume from.

    Attributes:
        out: folder to make or replace.
        folder: where it is made.

    Args:
        out: that folder.

    Raises:
        ValueError: it is no folder, or cannot be moved.
    """

    def __init__(self, out: Path) -> None:
        self._held = ExitStack()
        self.out = out.resolve()  # a link stays a link
        self.folder = self.out.with_name(f"{self.out.name}.training")
        self._previous = self.out.with_name(f"{self.out.name}.previous")
        if self.out.exists() and not self.out.is_dir():
            raise ValueError(f"out: {out}, must be a folder")
        if self.out.is_mount():
            raise ValueError(f"out: {out}, where something is mounted; must be a folder within it")

    def begin(self) -> None:
        """Make the folder; keep the states of a stopped run.

        Raises:
            RuntimeError: another process trains into it.
        """
        self._held.enter_context(working_in(self.folder, "training"))
        if self._previous.exists() and not self.out.exists():  # stopped between the two moves
            self._previous.rename(self.out)
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in self.folder.iterdir():
            if not path.match(STATES):
                _remove(path)

    def finish(self) -> None:
        """Replace the folder. Its other files stay in it."""
        for state in self.folder.glob(STATES):
            state.unlink()
        if self.out.exists():
            for path in self.out.iterdir():
                if not (self.folder / path.name).exists():
                    _copy(path, self.folder / path.name)
            if self._previous.exists():
                _remove(self._previous)
            self.out.rename(self._previous)
        self.folder.rename(self.out)
        if self._previous.exists():
            _remove(self._previous)
        self._held.close()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _copy(path: Path, there: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.copytree(path, there, symlinks=True)
    else:
        shutil.copy2(path, there, follow_symlinks=False)
