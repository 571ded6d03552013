from __future__ import annotations

from pathlib import Path

import pytest

from test.cli.conftest import Fails


@pytest.mark.parametrize("verb", [("data", "from-bag", "--out", "never"), ("bag", "evaluate")], ids=" ".join)
def test_a_contract_that_is_not_there_is_named(
    verb: tuple[str, ...], tmp_path: Path, fails: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    output = fails(*verb, tmp_path / "none", "--contract", tmp_path / "none.yaml")
    assert output.startswith(f"adahi: contract: '{tmp_path / 'none.yaml'}', no such file")
    assert not Path("never").exists()
