"""One process works in a folder at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from adahi_lab.training.working_folder import working_in

HOLD = """
import sys
from pathlib import Path
from adahi_lab.training.working_folder import working_in
with working_in(Path(sys.argv[1]), "training"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_folder_is_held_by_one_process_until_that_ends_however_it_does(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "policies"
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            fault = rf"policies: another process works in this folder \(training, process {other.pid}\)"
            with pytest.raises(RuntimeError, match=fault), working_in(folder, "training"):
                pass
        finally:
            other.kill()
            other.wait(30.0)
    with working_in(folder, "training"):
        pass
