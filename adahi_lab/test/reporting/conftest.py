from __future__ import annotations

from collections.abc import Callable

import pytest
from rich.console import Console
from rich.table import Table


@pytest.fixture(scope="session")
def shown() -> Callable[..., str]:
    """From a table to how a terminal, by default of 80 columns, shows it."""

    def show(table: Table, width: int = 80) -> str:
        console = Console(width=width)
        with console.capture() as capture:
            console.print(table)
        return capture.get()

    return show
