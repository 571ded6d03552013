"""The pages say what the code says."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from adahi_ros.contract.parsing import parse_contract
from adahi_ros.nodes.launching.modules import MODULES

ROOT = Path(__file__).resolve().parents[1]
MOST_WORDS = 36_000  # of all user pages, the reference among them
MOST_RESEARCH_WORDS = 15_000  # of all research pages, without the tables that commands wrote
PAGES = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))


def anchors(page: Path) -> set[str]:
    """Return what a page's headings are linked by, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_reference_is_what_the_code_says() -> None:
    command = [sys.executable, "tools/reference.py", "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert checked.returncode == 0, checked.stdout + checked.stderr + "run it without --check"


def test_the_reference_has_every_node() -> None:
    page = (ROOT / "docs/reference/parameters.md").read_text()
    files = (ROOT / "adahi_ros/nodes").rglob("*_node.py")
    for file in (each for each in files if each.parent.name != "common"):  # which has what nodes share
        assert f"\n## {file.stem}\n" in page
        assert MODULES[file.stem].split(".")[-2:] == [file.parent.name, file.stem]


def test_every_page_is_in_the_site_which_loads_nothing_from_the_network(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    for page in tmp_path.rglob("*.html"):
        tags = r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?([^\" >]+)"
        loaded = re.findall(tags, page.read_text())
        assert loaded
        assert [each for each in loaded if re.match(r"(?:https?:)?//", each)] == []


def words_of(text: str) -> int:
    """Return the number of words: what has a letter or a digit, so no lines of tables."""
    return sum(any(map(str.isalnum, word)) for word in text.split())


def test_research_says_so_with_a_date_and_pages_stay_short() -> None:
    words = research_words = 0
    for page in (ROOT / "docs").rglob("*.md"):
        folder = page.relative_to(ROOT / "docs").parts[0]
        text = page.read_text()
        if folder == "research" and page.parent.name != "tables":
            assert "\n\nResearch notes, not needed to run a robot.\n" in text[:200], page.name
            assert re.search(r"^State of 20\d\d-\d\d-\d\d\.", text, re.MULTILINE), page.name
            research_words += words_of(text)
        elif folder not in ("research", "developers"):
            words += words_of(text)
    assert words <= MOST_WORDS
    assert research_words <= MOST_RESEARCH_WORDS


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for link in re.findall(r"\]\(([^)]+)\)", page.read_text()):
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            assert target.exists(), f"{page.name}: {link}"
            assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


def test_the_rooms_are_those_that_the_imports_are_checked_by() -> None:
    page = (ROOT / "docs/developers/architecture.md").read_text()
    checked = runpy.run_path(str(ROOT / "test/test_imports.py"))
    found = {}
    for room, allowed in re.findall(r"^\| `adahi_ros/([\w/]+)/` \|[^|]*\|([^|]*)\|$", page, re.MULTILINE):
        names = set(filter(None, (name.strip() for name in allowed.split(","))))
        found[room.replace("/", ".")] = names - {"nodes.common"}
    expected = {**checked["MAY_IMPORT"], **checked["NODES_MAY_IMPORT"]}
    assert found == {room: rooms - {room} for room, rooms in expected.items() if room != "nodes"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_contracts_on_a_page_can_be_read(page: Path) -> None:
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL):
        if block.startswith("robot_type:"):
            parse_contract(yaml.safe_load(block))


NOTES = [page for page in PAGES if {"developers", "research"} & {*page.parts}]


@pytest.mark.parametrize("page", NOTES, ids=lambda page: page.name)
def test_files_that_a_page_for_developers_names_exist(page: Path) -> None:
    named = re.findall(r"`([a-z_/]+/[a-z_]+\.py)\b", page.read_text())
    places = (ROOT / "adahi_ros", ROOT / "adahi_lab", ROOT)
    assert [each for each in named if not any((place / each).exists() for place in places)] == []


def test_every_verb_on_a_page_is_one() -> None:
    reference = (ROOT / "docs/reference/command.md").read_text()
    verbs = set(re.findall(r"^\| `adahi ([\w -]+)` \|", reference, re.MULTILINE))
    groups = {" ".join(verb.split()[:count]) for verb in verbs for count in range(1, len(verb.split()))}
    for page in PAGES:
        for called in re.findall(
            r"(?:`|^    |bin/)adahi ([a-z]+(?: [a-z][a-z-]*)?)", page.read_text(), re.MULTILINE
        ):
            first = called.partition(" ")[0]
            name = called if first in groups else first
            shown = re.findall(r"`adahi_ros.verbs`: `(\w+) = ", page.read_text())
            known = verbs | groups | set(shown)
            assert name in known, f"{page.name}: adahi {called}"


def test_messages_that_have_a_documented_fix_exist() -> None:
    texts = [
        node.value
        for package in ("adahi_ros", "adahi_lab/adahi_lab")
        for file in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    messages = re.findall(r'`"([^`]+)"`', (ROOT / "docs/how_to/troubleshooting.md").read_text())
    assert messages
    for message in messages:
        for part in filter(None, (" ".join(part.split()) for part in message.split("…"))):
            assert any(part in each for each in texts), f"{message}: nobody says {part!r}"


INTERFACES = sorted(path for path in (ROOT / "adahi_msgs").glob("*/*.*") if path.suffix != ".action")


@pytest.mark.parametrize("path", INTERFACES, ids=lambda path: path.name)
def test_a_message_names_its_topic_and_qos_as_they_are(path: Path) -> None:
    comment = " ".join(
        line.removeprefix("#").strip() for line in path.read_text().splitlines() if line[:1] == "#"
    )
    found = re.search(r"(?:Topic|Service) `([\w~/]+)`, of the node (\w+).*?\. QoS: ([\w, ]+)", comment)
    assert found is not None
    name, node, qos = found.groups()
    page = (ROOT / "docs/reference/parameters.md").read_text()
    section = re.findall(rf"^## {node}_node\n(.*?)(?=^#)", page, re.MULTILINE | re.DOTALL)[0]
    rows = re.findall(
        rf"^\| (?:publishes|serves) \| `{name}` \| [\w/]+ \| ([\w, ]+) \|", section, re.MULTILINE
    )
    assert qos.replace("keep last ", "").removesuffix(", volatile") in rows


def test_every_reason_to_hold_is_on_the_page_about_stopping() -> None:
    page = (ROOT / "docs/explanation/stopping.md").read_text()
    message = (ROOT / "adahi_msgs/msg/SafetyState.msg").read_text()
    held = re.findall(r"^uint8 INTERVENTION_(\w+)=\d+ .*: held", message, re.MULTILINE)
    assert {"STALE", "DRIVER"} <= set(held)
    assert [name for name in held if f"{name} |" not in page] == []
    fields = ("enabled", "stopped", "needs_press", "holding", "at_rest", "interventions", "message")
    assert all(f"| `{field}` |" in page for field in fields)
    assert "stopping.md" in (ROOT / "README.md").read_text()
    assert "stopping.md" in (ROOT / "docs/how_to/set_up_a_robot.md").read_text()
