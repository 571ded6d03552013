from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from adahi_lab.link import restarted_server

SERVER = """import os, time
if __name__ == "__main__":
    print(os.getpid(), flush=True)
    time.sleep(60)
"""


def test_a_server_is_killed_and_back_later_or_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy_server.py").write_text(SERVER)
    control = tmp_path / "control"
    monkeypatch.setattr(restarted_server, "SETTLE_S", 0.0)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    command = [sys.executable, "-m", "adahi_lab.link.restarted_server", str(control), "toy_server"]
    link = restarted_server.link_of(str(control))
    with subprocess.Popen(command, stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        pids = [int(supervisor.stdout.readline())]
        begin_s = time.monotonic()
        for for_s in (0.5, 60.0):
            link.cut(for_s)
            if for_s > 1.0:
                link.cut(0.0)  # the episode is over
            pids.append(int(supervisor.stdout.readline()))
            assert time.monotonic() > begin_s + 0.5
            with pytest.raises(ProcessLookupError):
                os.kill(pids[-2], 0)
            link.cut(0.0)
        supervisor.terminate()
