"""`adahi methods`: the methods of papers that are here."""

from __future__ import annotations

from dataclasses import asdict

from rich.text import Text

from adahi_ros.cli.options import JsonFile
from adahi_ros.cli.terminal import console, write_json


def methods(json_file: JsonFile = None) -> None:
    """Tell which papers' methods are here, where each is, and how it is run; docs/methods.md has more."""
    from adahi_ros.evaluation.literature import LITERATURE

    for each in LITERATURE:
        console.print(Text.assemble((each.name, "bold"), f"  {each.paper}"))
        console.print(Text(f"  {each.idea}\n  {each.run}  (adahi_ros/{each.file})"))
    write_json(json_file, {"methods": [asdict(each) for each in LITERATURE]})
