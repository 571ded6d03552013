# SPDX-License-Identifier: Apache-2.0
"""Count lines of code: without docstrings, comments and blank lines.

python tools/count_lines.py adahi_ros test          # a line per folder, and the sum
python tools/count_lines.py --imports MODULE ...     # of the modules of this package that these import
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}


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


def loaded(modules: list[str], package: str = "adahi_ros") -> dict[str, Path]:
    """Return the modules of a package that a fresh interpreter loads to import some, with their files."""
    program = (
        "import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "for name, module in sorted(sys.modules.items()):\n"
        f"    if (name + '.').startswith('{package}.'): print(name, module.__file__)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {name: Path(file) for name, file in (line.split(" ", 1) for line in done.stdout.splitlines())}


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="+", help="folders, or modules with --imports")
    parser.add_argument("--imports", action="store_true", help="count what importing the modules loads")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    if options.imports:
        for name, file in loaded(options.names).items():
            counts[name] = code_lines(file.read_text())
    else:
        for folder in options.names:
            for file in sorted(Path(folder).rglob("*.py")):
                counts[str(file.parent)] += code_lines(file.read_text())
    for name, count in sorted(counts.items()):
        print(f"{count:6} {name}")
    print(f"{sum(counts.values()):6} in {len(counts)}")


if __name__ == "__main__":
    main()
