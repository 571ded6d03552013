# SPDX-License-Identifier: Apache-2.0
"""Refuse words that have a plainer one, and long sentences, in pages, docstrings, comments and texts.

python tools/plain_english.py [PATH ...]  # by default the repository; lines with `plain: ok` are skipped
"""

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CODE = ("adahi_ros", "adahi_lab/adahi_lab", "adahi_lab/launch", "adahi_msgs", "launch")
CHECKED = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "QUALITY_DECLARATION.md",
    "CHANGELOG.rst",
    "adahi_lab/CHANGELOG.rst",
    "docs",
    *CODE,
)
PAGES = (".md", ".rst")
SUFFIXES = (*PAGES, ".py", ".msg", ".srv", ".action")
LONGEST = 35  # words of a sentence on a page
TEXT = 20  # characters; longer string literals are texts
EXCEPTION = "plain: ok"
WORDS = """told = receive | heard = receive | hears? = receive | anew = again | mend(?:s|ed|ing)? = correct
cures? = fix | whoever = the caller | whose = with its | nobody = none | of others = third-party
of one's own = own | of late(?!,) = recently | seldom = rarely | hardly = rarely | but for = except
in the place of = instead of | such an? = this kind of | such as it is = unmodified
go(?:es)? (?:on )?by = use | comes to = is
is to be had = is available | by its word = by name | as it comes = unmodified | in the flesh = real
wins nothing = does not help | gives away = reveals | strangers = unknown | unless told = by default
what becomes of = result of | so much = by this amount | has had = has received | begun = started
under way = in progress or in flight | tally = count"""
BETTER = dict(each.strip().split(" = ") for each in re.split(r"[|](?![\w?)])|\n", WORDS))
REFUSED = re.compile(rf"\b(?:{'|'.join(BETTER)})\b", re.IGNORECASE)


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield numbers and lines of a page, or of the comments and texts of a file."""
    source = path.read_text()
    lines = source.splitlines()
    if path.suffix in PAGES:
        yield from enumerate(re.sub(r"`[^`\n]*`", "X", source).splitlines(), 1)
    elif path.suffix != ".py":
        yield from ((number, line.partition("#")[2]) for number, line in enumerate(lines, 1))
    else:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and len(token.string) > TEXT):
                for number, line in enumerate(token.string.splitlines(), token.start[0]):
                    names = re.sub(r"`[^`]*`|\{[^{}]*\}|^\s*\w+: ", " ", line)
                    yield number, "" if EXCEPTION in lines[number - 1] else names


def sentences(page: str) -> Iterator[tuple[int, str]]:
    """Yield line numbers and sentences of a page, without code, tables and headings."""
    page = re.sub(r"```.*?```|<!--.*?-->", lambda found: "\n" * found[0].count("\n"), page, flags=re.DOTALL)
    page = re.sub(r"^(?: {4}|\||#).*$", "", re.sub(r"\]\([^)]*\)|`[^`\n]*`", "X", page), flags=re.MULTILINE)
    start = r"\n\s*(?:\n|- |\d+\. )"
    end = rf"[.!?:;](?=\s)|(?={start})|\Z"
    for found in re.finditer(rf"\S(?:.|\n)*?(?:{end})", page):
        yield page.count("\n", 0, found.start()) + 1, found[0]


def faults(path: Path) -> Iterator[str]:
    """Yield a line for each refused word and each long sentence of a file."""
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    for number, line in prose(path):
        for found in [] if EXCEPTION in line else REFUSED.finditer(line):
            better = next(good for bad, good in BETTER.items() if re.fullmatch(bad, found[0], re.IGNORECASE))
            yield f"{shown}:{number}: {found[0]}, better: {better}"
    for number, sentence in sentences(path.read_text()) if path.suffix == ".md" else ():
        if (words := len(sentence.split())) > LONGEST:
            yield f"{shown}:{number}: {words} words, must be at most {LONGEST}: split the sentence"


def main(names: list[str]) -> int:
    """Print the faults of files and folders; return 1 where there are any."""
    found: list[str] = []
    for each in [Path(name) for name in names] or [ROOT / name for name in CHECKED]:
        for path in [each] if each.is_file() else sorted(each.rglob("*")):
            if path.suffix in SUFFIXES:
                found += faults(path)
    print(*found, sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
