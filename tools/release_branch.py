# SPDX-License-Identifier: Apache-2.0
"""Write a commit with each package in a folder of its own, as bloom needs it.

    .venv/bin/python tools/release_branch.py release     # the branch `release` gets HEAD's content

bloom looks for no package inside a package, and releases a folder per package. The work tree is not touched.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"checkpoints": "adahi_checkpoints", "adahi_lab": "adahi_lab", "adahi_msgs": "adahi_msgs"}
"""Packages inside of adahi_ros, by folder."""


def git(*words: str, given: str = "", environment: Mapping[str, str] | None = None) -> str:
    """Run git here and return what it prints.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(
        command, input=given, stdout=subprocess.PIPE, text=True, check=True, env=environment
    ).stdout.strip()


def release_tree(source: str, environment: Mapping[str, str] | None = None) -> str:
    """Return the hash of a tree with a folder for each package.

    Args:
        source: commit or tree of this repository.
        environment: of git; None for this process's.
    """

    def entries(tree: str) -> dict[str, str]:
        lines = git("ls-tree", tree, environment=environment).splitlines()
        return {line.partition("\t")[2]: line for line in lines}

    def made_of(lines: Mapping[str, str]) -> str:
        return git("mktree", given="".join(f"{line}\n" for line in lines.values()), environment=environment)

    top = entries(source)
    kept = {name: line for name, line in top.items() if name not in PACKAGES}
    inside = {name: f"{top[folder].partition(chr(9))[0]}\t{name}" for folder, name in PACKAGES.items()}
    return made_of({**inside, "adahi_ros": f"040000 tree {made_of(kept)}\tadahi_ros"})


def main() -> None:
    """Add a commit to the branch that the command names."""
    (branch,) = sys.argv[1:] or ["release"]
    reference = f"refs/heads/{branch}"
    parents = git("for-each-ref", "--format=%(objectname)", reference).split()
    words = [word for parent in parents for word in ("-p", parent)]
    commit = git("commit-tree", *words, "-m", f"Release of {git('rev-parse', 'HEAD')}", release_tree("HEAD"))
    git("update-ref", reference, commit)
    print(f"{branch}: {commit}")


if __name__ == "__main__":
    main()
