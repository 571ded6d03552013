# SPDX-License-Identifier: Apache-2.0
"""A hook of mkdocs: adds the repository's files that pages link to, below `repository/`, and includes tables.

A line that is only a link to a file of research/tables becomes that file. On GitHub it stays a link.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "repository"
LINK = re.compile(r"\]\((\.\./[^)#\s]+)")
TABLE = re.compile(r"^\[[^\]]+\]\(((?:\.\./)?tables/[\w-]+\.md)\)$", re.MULTILINE)


def _beyond_docs(page: Path, link: str) -> Path | None:
    """Return the repository's file of a link; None where it stays within the documentation."""
    target = Path(os.path.normpath(page.parent / link))
    return target.relative_to(ROOT) if target.is_file() and not target.is_relative_to(ROOT / "docs") else None


def on_files(files: Any, config: Any) -> Any:
    """Add every linked file of the repository as a file of the site."""
    from mkdocs.structure.files import File

    found: set[Path] = set()
    for page in files.documentation_pages():
        path = Path(page.abs_src_path)
        found.update(filter(None, (_beyond_docs(path, link) for link in LINK.findall(path.read_text()))))
    for each in sorted(found):  # as plain text, which a browser shows
        files.append(File.generated(config, f"{FOLDER}/{each}.txt", abs_src_path=str(ROOT / each)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Include tables, and change links to the repository's files to their places in the site."""
    path = Path(page.file.abs_src_path)
    markdown = TABLE.sub(lambda found: (path.parent / found[1]).read_text(), markdown)

    def moved(found: re.Match[str]) -> str:
        each = _beyond_docs(path, found[1])
        if each is None:
            return found[0]
        up = "../" * page.file.src_uri.count("/")
        return f"]({up}{FOLDER}/{each}.txt"

    return LINK.sub(moved, markdown)
