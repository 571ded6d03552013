"""Fixtures of the verbs: those of the product's."""

from __future__ import annotations

from test.bags.conftest import bag, contract, contract_file, contract_values, in_bag, lines
from test.cli.conftest import calibrated, loaded_by_help, measured, recipe, run, toy, unexported

__all__ = ["bag", "contract", "contract_file", "contract_values", "in_bag", "lines"]
__all__ += ["calibrated", "loaded_by_help", "measured", "recipe", "run", "toy", "unexported"]
