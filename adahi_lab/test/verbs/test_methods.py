from __future__ import annotations

from adahi_lab.papers.literature import LITERATURE
from test.cli.conftest import Measured


def test_each_method_is_reported_with_how_it_is_run_and_when(measured: Measured) -> None:
    result, figures = measured("methods")
    text = " ".join(result.output.split())  # whatever the width
    written = figures["methods"]
    assert [each["name"] for each in written] == [each.name for each in LITERATURE]
    for each, values in zip(LITERATURE, written, strict=True):
        assert f"{each.name} {each.paper}" in text
        assert f"use it: {each.use}" in text
        assert f"{each.fidelity}{': ' * bool(each.differs)}{each.differs}" in text
        assert (values["run"], values["file"], values["use"]) == (each.run, each.file, each.use)
        assert each.run in text
