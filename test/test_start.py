"""SIGINT while an executable still imports its modules: it ends as shells expect, without a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

INTERRUPTED = """
import os, signal
os.kill(os.getpid(), signal.SIGINT)
"""
ENTER = """
import sys
sys.path.insert(0, sys.argv[1])
from adahi_ros.start import run_main
run_main("interrupted")
"""


def test_sigint_amid_an_import_leaves_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    ended = subprocess.run(
        [sys.executable, "-c", ENTER, str(tmp_path)], capture_output=True, text=True, timeout=60.0
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_all_entry_points_go_through_it() -> None:
    points = [line for line in Path("setup.py").read_text().splitlines() if " = adahi_ros." in line]
    assert len(points) == 7
    assert all("adahi_ros.start:" in line for line in points)
