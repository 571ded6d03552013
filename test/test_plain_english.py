"""User pages are in plain English: words that have a plainer one, and long sentences, are refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("tutorials", "how_to", "explanation", "reference")
FROM_MESSAGES = ("messages.md",)  # generated from comments of adahi_msgs
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs/index.md",
    *(
        page
        for folder in FOLDERS
        for page in sorted((ROOT / "docs" / folder).glob("*.md"))
        if page.name not in FROM_MESSAGES
    ),
]
REFUSED = re.compile(
    r"\b(told|tells? of|hears?|heard|said|asked|anew|mend(?:s|ed)?|cure|whoever|nobody|of others|of one's own"
    r"|of late(?!,)|seldom|hardly|but for|in the place of|such a one|goes (?:on )?by|has had|comes to"
    r"|to be had|by its word|as it comes|in the flesh|wins nothing|gives away|strangers|becomes of"
    r"|under way|begun|tally)\b",
    re.IGNORECASE,
)
LONGEST = 35  # words of a sentence


def prose(page: Path) -> str:
    """Return a page without blocks and spans of code; a link is its text."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", page.read_text(), flags=re.DOTALL)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    text = re.sub(r"`[^`]*`", "X", text)
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)


def sentences(page: Path) -> Iterator[str]:
    for block in re.split(r"\n\s*\n|\n- |\n\d+\. |\||^#+ ", prose(page), flags=re.MULTILINE):
        for sentence in re.split(r"(?<=[.!?:;])\s+", block.strip()):
            yield " ".join(sentence.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_words_that_have_a_plainer_one_are_not_used(page: Path) -> None:
    assert [line for line in prose(page).splitlines() if REFUSED.search(line)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sentences_are_short(page: Path) -> None:
    assert [each for each in sentences(page) if len(each.split()) > LONGEST] == []
