# SPDX-License-Identifier: Apache-2.0
"""Fields of files, gates, rules, proposers and messages, as Markdown, from their docstrings and comments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from adahi_lab.methods.method_names import ALIASES
from adahi_ros.acceptance.registry import ACCEPTANCES
from adahi_ros.contract.contract_file import (
    AlignFields,
    CameraFields,
    ChannelFields,
    ContractFile,
    QosFields,
    SinkFields,
    SourceFields,
)
from adahi_ros.contract.monitors import Monitor
from adahi_ros.core.assets import asset
from adahi_ros.core.registry import arguments_of
from adahi_ros.core.schema import checked
from adahi_ros.core.yaml_files import read_yaml
from adahi_ros.gates.interface import GateContext, LinkEstimate, PlanContext
from adahi_ros.gates.registry import GATES
from adahi_ros.policies.remote.groot import GrootFile
from adahi_ros.policies.remote.lerobot_remote import LeRobotRemoteFile
from adahi_ros.policies.remote.lerobot_target import LeRobotFile
from adahi_ros.policies.remote.openpi import OpenPiFile
from adahi_ros.policies.remote.server_fields import ServerFile
from adahi_ros.policies.remote.target_fields import (
    ActionEnds,
    ImageEntry,
    Instruction,
    RelativeEntry,
    StateEntry,
    TargetFile,
)
from adahi_ros.proposers.registry import PROPOSERS
from adahi_ros.safety.command_limits import LIMITS
from adahi_ros.safety.entry_limits import ENTRY_LIMITS
from adahi_ros.safety.holds import FREE, REPORTED_AS, TABLE, Hold, State

ENTRY = re.compile(r"^    (\w+): (.*?)(?=^    \w+: |\Z)", re.DOTALL | re.MULTILINE)
CONSTANT = re.compile(r"^u?int\d+ ([A-Z_]+)=(\d+)[ \t]*(?:# (.*))?((?:\n {10,}# .*)*)", re.MULTILINE)
IGNORED = "; ignored"  # ends the description of a key that is accepted without effect
INTERFACES = ("msg", "srv", "action")
ATTRIBUTES = re.compile(r"\nAttributes:\n(.*?)(?=\n\w|\Z)", re.DOTALL)


def described(kind: type) -> dict[str, str]:
    """Return the descriptions of attributes in the docstrings of a class and its bases, by name."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        text = inspect.cleandoc(each.__doc__ or "") if "__doc__" in vars(each) else ""
        for block in ATTRIBUTES.findall(text):
            for name, about in ENTRY.findall(block + "\n"):
                found[name] = " ".join(about.split())
    return found


def _default(each: Any) -> str:
    value = each.default
    if value is MISSING:
        return "required" if each.default_factory is MISSING else ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:g}"
    return f"`{value}`" if isinstance(value, str) and value else ""


def field_table(kind: type, *without: type) -> str:
    """Return the fields of a dataclass as a table, less those of other classes and those without effect."""
    about = described(kind)
    left_out = {each.name for base in without for each in fields(base)}
    rows = ["| key | meaning | default |", "|---|---|---|"]
    for each in fields(kind):
        if each.name in left_out or about[each.name].rstrip(".").endswith(IGNORED):
            continue
        text = about[each.name].rstrip(".")
        rows.append(f"| `{each.name.rstrip('_')}` | {text} | {_default(each)} |")
    return "\n".join(rows)


def _attribute_table(kind: type) -> str:
    rows = [f"| `{name}` | {about.rstrip('.')} |" for name, about in described(kind).items()]
    return "\n".join(["| field | meaning |", "|---|---|", *rows])


def _first_sentence(component: Any) -> str:
    return inspect.cleandoc(component.__doc__ or "").partition("\n\n")[0].replace("\n", " ").rstrip(".")


def _components(registry: Mapping[str, Any], shipped: Mapping[str, Any]) -> str:
    rows = ["| name | meaning | arguments |", "|---|---|---|"]
    for name in shipped:
        component = registry[name]
        made = arguments_of(component) if inspect.isclass(component) else {}
        arguments = ", ".join(f"`{each}`" for each in made)
        rows.append(f"| `{name}` | {_first_sentence(component)} | {arguments} |")
    return "\n".join(rows)


def _methods() -> str:
    rows = [f"| `{name}` | `{alias.method}` | {alias.about} |" for name, alias in ALIASES.items()]
    return "\n".join(["| name | stands for | meaning |", "|---|---|---|", *rows])


def _allowed(kind: Any) -> str:
    """Return the allowed values of a type in a file, as in its error."""
    try:
        checked(kind, object())
    except ValueError as error:
        return str(error).partition(", must be ")[2]
    return ""


def _entry_limits() -> str:
    """Return the limits of each commanded entry."""
    rows = [
        f"| `{name}` | {_allowed(limit.number)} | {limit.meaning} |" for name, limit in ENTRY_LIMITS.items()
    ]
    return "\n".join(["| key | allowed | meaning |", "|---|---|---|", *rows])


def _command_limits() -> str:
    """Return the limits of a whole command."""
    rows = [
        f"| `{name}` | {', '.join(f'`{field.name}`' for field in fields(LIMITS[name]))} "
        f"| {' '.join(inspect.cleandoc(LIMITS[name].__doc__ or '').split())} |"
        for name in LIMITS.shipped
    ]
    return "\n".join(["| key | a mapping of | meaning |", "|---|---|---|", *rows])


def _best() -> str:
    """Return what is recommended for each task, from config/best."""
    rows = [
        "| task | `proposer.name` | `wait_policy` | `gate.name` | `gate.threshold` |",
        "|---|---|---|---|---|",
    ]
    for path in sorted(asset("config/best").glob("*.yaml")):
        values = read_yaml(path)["/**/draft_policy"]["ros__parameters"]
        gate, proposer = values["gate"], values["proposer"]["name"]
        rows.append(
            f"| `{path.stem}` | `{proposer}` | `{values['wait_policy']}` | `{gate['name']}` "
            f"| {gate['threshold']:g} |"
        )
    return "\n".join(rows)


def _holds() -> str:
    """Return the table of what holds an arm."""
    rows = ["| hold | begins with | ends with | `safety_state` |", "|---|---|---|---|"]
    for hold, changes in TABLE.items():
        begins, over, ends = [], [], []
        for events, before, after in changes:
            words = [each.value for each in events]
            if after in FREE and before == (State.WAITS,) and hold is Hold.DRIVER:
                alone = " or ".join(words)
            elif after in FREE:
                ends += words
            elif before == (State.LASTS,):
                over += words
            elif before == (State.GRANTED,):
                begins += [f"{each}, where `~/set_enabled` had enabled it" for each in words]
            else:
                begins += words
        ends = list(dict.fromkeys(each for each in ends if each not in over))
        until = f"{'; '.join(over)}; then {' or '.join(ends)}" if over else " or ".join(ends)
        until += f". After something was missing: {alone}" if hold is Hold.DRIVER else ""
        rows.append(
            f"| {hold.value} | {'; '.join(dict.fromkeys(begins))} | {until} | {REPORTED_AS[hold].name} |"
        )
    return "\n".join(rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "contract": lambda: field_table(ContractFile),
    "source": lambda: field_table(SourceFields),
    "channel": lambda: field_table(ChannelFields),
    "qos": lambda: field_table(QosFields),
    "align": lambda: field_table(AlignFields),
    "camera": lambda: field_table(CameraFields),
    "action": lambda: field_table(SinkFields, SourceFields),
    "driver": lambda: field_table(Monitor),
    "holds": _holds,
    "entry limits": _entry_limits,
    "command limits": _command_limits,
    "target": lambda: field_table(TargetFile),
    "target state": lambda: field_table(StateEntry),
    "target images": lambda: field_table(ImageEntry),
    "target instruction": lambda: field_table(Instruction),
    "target relative": lambda: field_table(RelativeEntry),
    "target range": lambda: field_table(ActionEnds),
    "lerobot": lambda: field_table(LeRobotFile, TargetFile),
    "server": lambda: field_table(ServerFile, TargetFile),
    "openpi": lambda: field_table(OpenPiFile, ServerFile),
    "groot": lambda: field_table(GrootFile, ServerFile),
    "lerobot_remote": lambda: field_table(LeRobotRemoteFile, ServerFile),
    "gates": lambda: _components(GATES, GATES.shipped),
    "rules": lambda: _components(ACCEPTANCES, ACCEPTANCES.shipped),
    "proposers": lambda: _components(PROPOSERS, PROPOSERS.shipped),
    "methods": _methods,
    "best": _best,
    "GateContext": lambda: _attribute_table(GateContext),
    "PlanContext": lambda: _attribute_table(PlanContext),
    "LinkEstimate": lambda: _attribute_table(LinkEstimate),
}
"""By its name in a page, `<!-- generated: NAME -->` to `<!-- end -->`: what makes a block."""


def with_blocks(page: str) -> str:
    """Return a page with its generated blocks made anew.

    Raises:
        KeyError: no block has such a name.
    """

    def made(found: re.Match[str]) -> str:
        return f"<!-- generated: {found[1]} -->\n\n{BLOCKS[found[1]]()}\n\n<!-- end -->"

    return re.sub(r"<!-- generated: ([\w ]+) -->\n.*?<!-- end -->", made, page, flags=re.DOTALL)


def interface_sections() -> Iterator[str]:
    """Iterate over the sections of messages, services and actions."""
    files = [path for path in sorted(asset("adahi_msgs").glob("*/*.*")) if path.suffix[1:] in INTERFACES]
    for path in files:
        yield _interface(path)


def _interface(path: Path) -> str:
    text = path.read_text()
    comment = re.match(r"(?:#.*\n)+", text)
    header = "\n".join(line[2:] for line in comment[0].splitlines()).strip() if comment else ""
    about = [" ".join(part.split()) for part in header.split("\n\n")[:2]]
    name = f"{path.parent.name}/{path.name}"
    parts = [f"## {path.stem}", *about, f"File: [adahi_msgs/{name}](../../adahi_msgs/{name})"]
    constants = CONSTANT.findall(text)
    if constants:
        rows = ["| constant | value | meaning |", "|---|---|---|"]
        for constant, value, first, more in constants:
            meaning = " ".join([first, *re.findall(r"# (.*)", more)]).strip()
            rows.append(f"| `{constant}` | {value} | {meaning} |")
        parts.append("\n".join(rows))
    return "\n\n".join(parts) + "\n"
