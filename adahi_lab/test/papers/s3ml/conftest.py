"""A fixture of the command line: the product's."""

from __future__ import annotations

from test.cli.conftest import run

__all__ = ["run"]
