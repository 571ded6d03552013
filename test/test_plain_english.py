"""Pages, docstrings, comments and texts are in plain English: tools/plain_english.py finds nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def checked(*paths: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools/plain_english.py"), *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_planted_word_and_a_long_sentence_are_found(tmp_path: Path) -> None:
    page, module = tmp_path / "page.md", tmp_path / "module.py"
    page.write_text(f"Short.\n\n{'word ' * 36}end.\n\nIt is told. <!-- plain: ok -->\n")
    module.write_text('"""The robot is told what to do."""\ntold = 1\nA = "nobody"  # Trained anew.\n')
    found = checked(page, module)
    assert found.returncode == 1
    assert found.stdout.splitlines() == [
        f"{page}:3: 37 words, must be at most 35: split the sentence",
        f"{module}:1: told, better: receive",
        f"{module}:3: anew, better: again",
    ]


def test_the_repository_is_in_plain_english() -> None:
    found = checked()
    assert (found.returncode, found.stdout.strip()) == (0, "")
