"""The toy robot's bags, as `test/bags` makes them."""

from test.bags.conftest import bag, contract, contract_file, contract_values, in_bag, lines

__all__ = ["bag", "contract", "contract_file", "contract_values", "in_bag", "lines"]
