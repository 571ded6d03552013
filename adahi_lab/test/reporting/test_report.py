from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from adahi_lab.reporting.report import PICTURES, REPORT, TABLE, TEXTS, write_report

LOADING = ("src", "href", "srcset", "data")
PNG = b"\x89PNG and what follows"
FIGURES: dict[str, Any] = {
    "success_rate": 0.7654,
    "success_ci95": [0.71, 0.82],
    "success_at_end": 0.5321,
    "subtasks": 4,
    "subtasks_completed": 2.718,
    "transmission_rate": 0.6123,
    "true_skip_ratio": None,
    "rejection_rate": [0.8123, 0.31],
    "mse": 0.2345,
}
BETTER = {**FIGURES, "success_rate": 0.8888, "transmission_rate": 0.25, "rejection_rate": []}
TABLES = {
    "command": "adahi lab table --task ball",
    "seed": 7,
    "episodes": 123,
    "tasks": {
        "ball": {
            "methods": {"adahi": FIGURES, "hybrid": {**FIGURES, "success_rate": 0.7777}, "plan_4": BETTER}
        },
        "maze": {"methods": {"adahi": FIGURES}},
    },
    "configuration": {"config/ball.yaml": "a: 1  # <b>not</b> & bold\n"},
}
DRAWN = {
    "command": "adahi lab figures",
    "episodes": 5,
    "tasks": {"swarm": {}},
    "configuration": {"config/links/wifi_ac.yaml": "rtt_mean_ms: 12.054\n"},
}


class Page(HTMLParser):
    """What a reader sees, what the page loads, and which tags it has."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[str] = []
        self.loaded: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loaded += [value or "" for name, value in attributes if name in LOADING]

    def handle_data(self, text: str) -> None:
        self.texts.append(" ".join(text.split()))

    @property
    def text(self) -> str:
        return " | ".join(filter(None, self.texts))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / TABLE).write_text(json.dumps(TABLES))
    (tmp_path / PICTURES).write_text(json.dumps(DRAWN))
    for name in TEXTS:
        (tmp_path / f"{name}.png").write_bytes(PNG + name.encode())
    return tmp_path


def report(folder: Path) -> tuple[str, Page]:
    path = folder / "new" / REPORT
    write_report(folder, path)
    html = path.read_text()
    return html, Page(html)


def test_a_report_says_what_was_measured_and_what_the_paper_has(folder: Path) -> None:
    _, page = report(folder)
    for number in ("0.765", "0.778", "0.889", "0.71 to 0.82", "0.532", "2.72 of 4", "0.612", "0.81 0.31"):
        assert number in page.text
    assert "adahi lab table --task ball, seed 7, 123 episodes per method and task" in page.text
    for label in ("ADAHI", "Hybrid", "Plan/4", "ball", "maze"):
        assert label in page.texts
    assert "0.811" in page.texts  # the paper's ADAHI on ball; of a maze it says nothing
    maze = page.text.split("| maze |")[1].split("| claim |")[0]
    assert "0.765" in maze
    assert "0.811" not in maze
    assert "At no more transmissions, at least as good as ADAHI: Hybrid, Plan/4." in page.text
    assert "holds" in page.texts
    for title, text in TEXTS.values():
        assert title in page.texts
        assert " ".join(text.split()) in page.text


def test_what_was_configured_is_shown_as_it_is_written(folder: Path) -> None:
    html, page = report(folder)
    assert "a: 1 # <b>not</b> & bold" in page.texts
    assert "<b>" not in html
    assert "config/links/wifi_ac.yaml" in page.texts
    assert "rtt_mean_ms: 12.054" in page.texts


@pytest.mark.parametrize(("kept", "command"), [(TABLE, "adahi lab table"), (PICTURES, "adahi lab figures")])
def test_half_of_the_results_is_reported_too(folder: Path, kept: str, command: str) -> None:
    for path in folder.iterdir():
        if path.name != kept:
            path.unlink()
    _, page = report(folder)
    assert command in page.text
    assert page.loaded == []
    assert ("seed 7" in page.text) == (kept == TABLE)


def test_a_folder_without_results_is_named_with_what_was_looked_for(tmp_path: Path) -> None:
    expected = (
        f"{tmp_path}: neither {TABLE} nor {PICTURES}; run 'adahi lab table' or 'adahi lab figures' first"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        write_report(tmp_path, tmp_path / REPORT)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [TABLE, PICTURES])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"tasks": ', "not JSON"),
        (b"\xff\xfe", "not "),
        (b"[]", "must be a mapping"),
        (b"{}", "tasks: missing, must be figures by task"),
        (b'{"tasks": ["ball"]}', "tasks: missing, must be figures by task"),
    ],
)
def test_a_damaged_file_is_named(folder: Path, name: str, content: bytes, message: str) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"^{re.escape(f'{folder / name}: {message}')}"):
        report(folder)


@pytest.mark.parametrize(
    "tasks",
    [
        {"ball": {}},
        {"ball": 5},
        {"ball": {"methods": {"adahi": {}}}},
        {"ball": {"methods": {"telepathy": FIGURES}}},
        {"ball": {"methods": {"adahi": {**FIGURES, "success_rate": "often"}}}},
    ],
)
def test_a_table_of_something_else_is_named(folder: Path, tasks: dict[str, Any]) -> None:
    (folder / TABLE).write_text(json.dumps({**TABLES, "tasks": tasks}))
    with pytest.raises(ValueError, match=f"^{re.escape(str(folder / TABLE))}: "):
        report(folder)
