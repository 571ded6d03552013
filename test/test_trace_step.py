"""A transmitted step passes a bounded number of files, with a bounded number of changes of file."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

FILES_MOST = 38
CHANGES_MOST = 127
TOOL = Path(__file__).parents[1] / "tools" / "trace_step.py"


def test_a_transmitted_step_passes_few_files() -> None:
    done = subprocess.run(
        [sys.executable, str(TOOL), "--sequence"], capture_output=True, text=True, check=True
    )
    found = re.search(r"(\d+) functions in (\d+) files, (\d+) changes of file", done.stdout)
    assert found is not None
    _, files, changes = map(int, found.groups())
    assert files <= FILES_MOST
    assert changes <= CHANGES_MOST
