from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from adahi_lab.nodes.domain import exclusive_domain
from adahi_ros.core.domains import DOMAINS, held_domains, lock_of

HOLD = """
from adahi_lab.nodes.domain import exclusive_domain
with exclusive_domain() as domain:
    print(domain, flush=True)
    input()
"""


def test_no_two_holders_have_the_same_domain() -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None
        theirs = int(other.stdout.readline())
        with exclusive_domain() as first, exclusive_domain() as second:
            assert len({theirs, first, second}) == 3
            assert {theirs, first, second} <= set(DOMAINS)
    finally:
        other.communicate("\n")


def test_a_domain_is_free_again_afterwards() -> None:
    for _ in range(2 * len(DOMAINS)):
        with exclusive_domain():
            pass


def test_a_holder_with_another_folder_for_temporary_files_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with exclusive_domain() as first:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # as TMPDIR does
        with exclusive_domain() as second:
            assert second != first


def test_the_newest_domain_that_is_held_is_found_first() -> None:
    with exclusive_domain() as first:
        os.utime(lock_of(first), (1.0, 1.0))  # the file system's clock may not tell two locks apart
        with exclusive_domain() as second:
            held = held_domains()
            assert held.index(second) < held.index(first)
        assert second not in held_domains()
