from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from adahi_ros.core.files import parse_json, read_bytes, read_json
from adahi_ros.core.written_files import replacing


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "Expecting"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": NaN}', "NaN: must be finite"),
        ('{"a": [-Infinity]}', "-Infinity: must be finite"),
        ('{"a": 1e999}', "1e999: must be finite"),
        ('{"a": 1, "b": {}, "a": 2}', "'a': there twice, must be one key"),
        (b'{"a": "\xff"}', "decode"),
    ],
)
def test_what_is_no_plain_json_is_reported(text: str | bytes, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        parse_json(text)


def test_plain_json_is_read_as_it_is() -> None:
    assert parse_json(b'{"a": [1, -2.5e3, null, "x"]}') == {"a": [1, -2500.0, None, "x"]}


def test_a_file_of_json_is_a_mapping_or_an_error_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "some.json"
    file.write_text('{"a": 1}')
    assert read_json(file) == {"a": 1}
    for text, fault in (("[1]", "must be a mapping"), ("{", "not JSON .Expecting")):
        file.write_text(text)
        with pytest.raises(ValueError, match=f"^{re.escape(str(file))}: {fault}"):
            read_json(file)
    with pytest.raises(ValueError, match=f"^{re.escape(str(tmp_path))}: not JSON .*directory"):
        read_json(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "none.json")


def test_a_file_that_does_not_know_its_size_is_read_up_to_one() -> None:
    with pytest.raises(ValueError, match="more than 10 bytes"):
        read_bytes(Path("/proc/self/status"), 10)


def test_what_is_replaced_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with replacing(path) as partial:
        partial.write_text("first")
        assert not path.exists()

    def write_half() -> None:
        with replacing(path) as partial:
            partial.write_text("sec")
            raise InterruptedError

    with pytest.raises(InterruptedError):
        write_half()
    assert path.read_text() == "first"
    assert list(path.parent.iterdir()) == [path]


def test_what_is_replaced_may_be_read_as_other_files_whatever_wrote_it(tmp_path: Path) -> None:
    usual, path = tmp_path / "usual", tmp_path / "weights.safetensors"
    usual.touch()
    with replacing(path) as partial:
        save_file({"weight": np.zeros(1)}, partial)
        partial.chmod(0o600)
    assert path.stat().st_mode == usual.stat().st_mode


def test_a_pointer_of_git_lfs_is_named(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n")
    with pytest.raises(ValueError, match="a Git LFS pointer, must be the file itself: run 'git lfs pull'"):
        read_bytes(path)
