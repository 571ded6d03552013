"""What is registered by a name is chosen by who configures it: the product asks for no name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import adahi_ros
from adahi_lab.methods.method_names import ALIASES
from adahi_lab.papers.literature import LITERATURE, lines
from adahi_lab.papers.tokens.token_pair import GROUPS
from adahi_lab.tasks import TASKS
from adahi_ros.acceptance.registry import ACCEPTANCES
from adahi_ros.cli.verbs import VERBS
from adahi_ros.core.gone_names import OURS, all_gone
from adahi_ros.gates.registry import GATES
from adahi_ros.nodes.server.target_verifier_parameters import ENGINES
from adahi_ros.policies.registry import CHECKPOINTS, POLICIES, SESSIONS
from adahi_ros.proposers.registry import PROPOSERS
from adahi_ros.robot.transports import TRANSPORTS
from adahi_ros.safety.command_limits import LIMITS
from adahi_ros.server.ray.start_condition import START_CONDITIONS

PACKAGE = Path(adahi_ros.__file__).parent
ROLES = (ACCEPTANCES, GATES, PROPOSERS, POLICIES, CHECKPOINTS, SESSIONS, ENGINES, TRANSPORTS, LIMITS)
REGISTRIES = (*ROLES, START_CONDITIONS, TASKS)
NAMES = {name for registry in REGISTRIES for name in registry}
ADDED = {name for registry in REGISTRIES for name in registry if name not in registry.shipped}
ADDED |= set(TASKS)
ADDED -= {"keys"}  # also the verb for SROS 2 keystores


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Iterate over the modules of the product, without those that define a registry."""
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text()
        if "] = Registry(" not in text:
            yield str(file.relative_to(PACKAGE)), ast.parse(text)


def test_no_module_compares_with_a_registered_name() -> None:
    """A default of a parameter may name one of the product's own."""
    found = {
        (file, each.value)
        for file, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        for each in (side, *getattr(side, "elts", ()))  # of `in` a tuple
        if isinstance(each, ast.Constant) and each.value in NAMES
    }
    assert not found


def test_no_module_asks_for_a_registered_class() -> None:
    places = {place for each in ROLES for place in each.shipped.values() if isinstance(place, str)}
    classes = {place.partition(":")[2] for place in places}
    found = {
        (file, name.id)
        for file, tree in sources()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("isinstance", "issubclass")
        for name in ast.walk(call.args[1])
        if isinstance(name, ast.Name) and name.id in classes
    }
    assert not found


def test_no_module_has_a_name_that_another_package_adds() -> None:
    found = {
        (file, node.value)
        for file, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in ADDED
    }
    assert not found


def test_no_text_names_a_verb_that_another_package_adds() -> None:
    """A robot may have the product alone."""
    others = {name for name in VERBS if name not in VERBS.shipped}
    others |= {name.removeprefix("adahi ") for name in all_gone().keys() - OURS.keys() if " " in name}
    ours = {words.split()[0] for words in VERBS.shipped}
    others |= {words.split()[0] for words in others} - ours
    naming = re.compile(rf"\badahi ({'|'.join(sorted(others))})\b")
    root = PACKAGE.parent
    files = [path for name in ("launch", "config") for path in (root / name).rglob("*") if path.is_file()]
    found = {
        (file.name, match[0])
        for file in (*PACKAGE.rglob("*.py"), *files)
        for match in naming.finditer(re.sub(r'"\s*\n\s*f?"', "", file.read_text()))  # strings side by side
    }
    assert found == set()


def words_in_use() -> set[str]:
    """Return the words of shipped settings, of code on the pages for users, and of the papers' lines."""
    root = PACKAGE.parent
    folders = ("config", "adahi_lab/config", "checkpoints")
    paths = [path for folder in folders for path in (root / folder).rglob("*.yaml")]
    texts = [re.sub(r"#.*", "", path.read_text()) for path in paths]
    for page in (root / "README.md", *root.glob("docs/how_to/*.md"), *root.glob("docs/tutorials/*.md")):
        texts += re.findall(r"(?s)```.*?```|`[^`]+`|\n {4,}[^\n]+", page.read_text())
    texts += [line.method for line in lines()]
    texts += [line.method for group in GROUPS for line in group.lines]
    texts += [f"{alias.method} {alias.backend}" for alias in ALIASES.values()]
    texts += [each.option for each in LITERATURE]
    return set(re.findall(r"\w+", " ".join(texts)))


def test_each_registered_name_is_in_a_setting_a_page_or_a_line() -> None:
    words = words_in_use()
    chosen = [each for each in ROLES if each not in (ENGINES, TRANSPORTS)]  # a default; what a rule needs
    found = {(registry.group, name) for registry in chosen for name in registry if name not in words}
    assert found == set()
