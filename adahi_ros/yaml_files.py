"""YAML that anyone may have written: plain data of bearable size, or an error that says why not."""

from __future__ import annotations

from typing import Any

import yaml

MOST_ENTRIES = 100_000  # with aliases written out: a few lines of them make billions


def parse_yaml(content: str | bytes) -> Any:
    """Return what a YAML file says.

    Its integers may be too large for a float.

    Raises:
        ValueError: it is not YAML, or too large or too deep to work with.
    """
    try:
        tree = yaml.safe_load(content)
        entries = _entries(tree, {})
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ValueError("not YAML of a file: nested too deeply") from None
    except (
        AttributeError,
        LookupError,
        TypeError,
    ) as error:  # PyYAML's, of tags that do not fit their values
        raise ValueError(f"not YAML: {type(error).__name__}, a tag does not fit its value") from None
    if entries > MOST_ENTRIES:
        raise ValueError(f"{entries} entries with aliases written out, must be {MOST_ENTRIES} at most")
    return tree


def _entries(tree: Any, counted: dict[int, int | None]) -> int:
    """Count entries; each container once, however often it is named."""
    if not isinstance(tree, (dict, list, tuple, set)):
        return 1
    if id(tree) not in counted:
        counted[id(tree)] = None
        parts = [*tree, *tree.values()] if isinstance(tree, dict) else tree
        counted[id(tree)] = 1 + sum(_entries(part, counted) for part in parts)
    entries = counted[id(tree)]
    if entries is None:
        raise ValueError("an alias names what it is in, must name what is before it")
    return entries
