"""SIGINT while an executable still imports its modules: it ends as shells expect, without a traceback."""

from __future__ import annotations

import re
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


BECOMES = """
import os, signal, sys
from adahi_ros.start import become
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), sys.argv[1])))
blocked = signal.pthread_sigmask
signal.pthread_sigmask = lambda *given: (blocked(*given), os.kill(os.getpid(), signal.SIGINT))
become("replaced", namespace="/mine/")
"""
REPLACED = """
import sys
def main():
    print(sys.argv[1:])
"""


def test_sigint_while_a_verb_becomes_a_node_leaves_no_traceback(tmp_path: Path) -> None:
    """The new process starts with SIGINT pending: earlier than any code of its own can handle it."""
    (tmp_path / "replaced.py").write_text(REPLACED)

    def ended(program: str) -> tuple[int, str, str]:
        made = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60.0
        )
        return made.returncode, made.stdout, made.stderr

    assert ended(BECOMES) == (130, "", "")
    shown = "['--ros-args', '-r', '__ns:=/mine']\n"
    assert ended(BECOMES.replace("os.kill(os.getpid(), signal.SIGINT)", "0")) == (0, shown, "")


def test_all_entry_points_go_through_it() -> None:
    for file, package, scripts in (("setup.py", "adahi_ros", 7), ("adahi_lab/setup.py", "adahi_lab", 1)):
        points = re.findall(rf'"(\w+) = {package}\.(\w+):(\w+)"', Path(file).read_text())
        assert len(points) == scripts
        assert all(module == "start" and name == function for name, module, function in points)
