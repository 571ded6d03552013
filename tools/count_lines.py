# SPDX-License-Identifier: Apache-2.0
"""Count lines of code: without docstrings, comments and blank lines.

python tools/count_lines.py adahi_ros test        # a line per folder, and the sum
python tools/count_lines.py --configured FILE      # of all that the robot's node loads with a parameter file
python tools/count_lines.py --configured FILE --node target_verifier
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import subprocess
import sys
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

from adahi_lab.nodes.domain import exclusive_domain, loopback_environment
from adahi_ros.nodes.launching.modules import MODULES

DEADLINE_S = 120.0  # only a broken node is slower, on a busy machine too
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}


@cache
def code_lines(source: str) -> int:
    """Return the number of lines with code in a Python source."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                docstrings |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


COUNTED = """
import sys
from functools import partial
from rclpy.task import Future
import {module} as program

def print_loaded(node):
    for name, module in sorted(sys.modules.items()):
        if (name + ".").startswith("adahi_ros."):
            print(name, module.__file__)
    ended = Future()
    ended.set_result(None)
    return ended

program.run = partial(program.run, finished=print_loaded)
program.main()
"""
"""A node's own `main`, which prints the modules of this package once the node is active, and ends."""


def configured(file: Path, node: str = "draft_policy") -> dict[str, Path]:
    """Return the modules of this package that a node has loaded, with their files.

    The node runs in a process and a domain of its own, and is configured and activated as a launch does it.

    Args:
        file: its ROS parameter file.
        node: draft_policy or target_verifier.

    Raises:
        RuntimeError: it cannot be configured and activated; has its output.
    """
    program = COUNTED.format(module=MODULES[f"{node}_node"])
    arguments = ["--ros-args", "--params-file", str(file), "-p", "autostart:=true"]
    with exclusive_domain() as domain:
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, **loopback_environment(domain)},
            timeout=DEADLINE_S,
        )
    if done.returncode:
        raise RuntimeError(f"{node} with {file}:\n{done.stderr}")
    found = (line.split(" ", 1) for line in done.stdout.splitlines())
    return {name: Path(path) for name, path in found if name.startswith("adahi_ros")}


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="+", help="folders, or a parameter file with --configured")
    parser.add_argument("--configured", action="store_true", help="count what a node has loaded, once active")
    parser.add_argument("--node", choices=("draft_policy", "target_verifier"), default="draft_policy")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for given in map(Path, options.names):
        if options.configured:
            for name, file in configured(given, options.node).items():
                counts[name] = code_lines(file.read_text())
        else:
            for file in sorted(given.rglob("*.py")):
                counts[str(file.parent)] += code_lines(file.read_text())
    for name, count in sorted(counts.items()):
        print(f"{count:6} {name}")
    print(f"{sum(counts.values()):6} in {len(counts)}")


if __name__ == "__main__":
    main()
