# SPDX-License-Identifier: Apache-2.0
"""Generates docs/reference from the code: nodes, parameters, messages, the command, fields of files.

    python tools/reference.py [--check]

Some pages are written whole; in others the blocks from `<!-- generated: NAME -->` to `<!-- end -->` are.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import rclpy
from rclpy.utilities import try_shutdown
from reference_files import interface_sections, with_blocks
from reference_nodes import node_sections

from adahi_lab.nodes.domain import exclusive_domain, loopback_environment
from adahi_ros.cli.verbs import VERBS
from adahi_ros.core.assets import asset

GENERATED = "This page is generated from the code by `python tools/reference.py`.\n"
NODES = f"""\
# Nodes and parameters

{GENERATED}
Names are relative to the node's namespace unless they begin with a slash; `~` is the node's own name.

- *QoS* is the reliability and the queue's depth. *Override*: ROS's `qos_overrides` parameters can change it.
- *Live* parameters can be set while the node is active, and take effect at the next control step. The node
  reads the others when it is configured.
- What every ROS node has is left out: parameter services, lifecycle services, `/clock` with `use_sim_time`.
"""
MESSAGES = f"""\
# Messages, services and actions

{GENERATED}
Each section has topic, QoS and constants. The linked definition explains every field and its unit.
"""
COMMAND = f"""\
# The command

{GENERATED}
`adahi COMMAND --help` shows the arguments, options and defaults.

| command | |
|---|---|"""


def whole_pages() -> dict[str, str]:
    """Return the generated pages of docs/reference, by file name; rclpy must be initialised."""
    return {
        "parameters.md": "\n".join([NODES, *node_sections()]),
        "messages.md": "\n".join([MESSAGES, *interface_sections()]),
        "command.md": _command(),
    }


def _command() -> str:
    """Return the commands of `adahi` with the first line of each one's help."""
    rows = [
        f"| `adahi {name}` | {' '.join((VERBS[name].__doc__ or '').partition(chr(10))[0].split())} |"
        for name in sorted(VERBS)
    ]
    rows.append("")
    return "\n".join([COMMAND, *rows])


def current_pages() -> dict[Path, str]:
    """Return the current text of every page that is generated, whole or in part."""
    folder = asset("docs/reference")
    pages = {folder / name: text for name, text in whole_pages().items()}
    for path in (*sorted(folder.glob("*.md")), asset("docs/explanation/stopping.md")):
        if path not in pages:
            pages[path] = with_blocks(path.read_text())
    return pages


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages, or with --check show how they differ from the code; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; status 1 where a page is not current"
    )
    check = parser.parse_args(arguments).check
    with exclusive_domain() as domain:
        os.environ.update(loopback_environment(domain))
        rclpy.init(args=["--ros-args", "--log-level", "error"])
        try:
            pages = current_pages()
        finally:
            try_shutdown()
    differs = False
    for path, text in pages.items():
        written = path.read_text() if path.exists() else ""
        differs |= written != text
        if check:
            lines = written.splitlines(True), text.splitlines(True)
            sys.stdout.writelines(difflib.unified_diff(*lines, path.name, "the code"))
        elif written != text:
            path.write_text(text)
    return int(check and differs)


if __name__ == "__main__":
    sys.exit(main())
