# SPDX-License-Identifier: Apache-2.0
"""Which papers' methods are here: where each is, how it is run, when to use it, and what it costs.

literature.yaml lists them; `adahi methods` prints the list, and `adahi lab table --literature` measures it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from adahi_ros.core.registry import Registry
from adahi_ros.core.schema import Listed, Schema, load


@dataclass(frozen=True)
class Line(Schema):
    """A line of the table: a method, and of which policies.

    Attributes:
        name: in the table.
        method: as `parse_methods` takes it, with what `for_task` puts in the place of a task.
        backend: of its policies; empty for that of all others.
        checkpoints: their folder, below the package's files, likewise; empty for the task's.
    """

    name: str
    method: str
    backend: str = ""
    checkpoints: str = ""

    @property
    def key(self) -> str:
        """What is different from line to line: the method, and the options that it takes beside it."""
        backend = f" --backend {self.backend}" if self.backend else ""
        return f"{self.method}{backend}" + (f" --checkpoints {self.checkpoints}" if self.checkpoints else "")


@dataclass(frozen=True)
class PaperMethod(Schema):
    """A method of a paper.

    Attributes:
        name: that the paper gives it, or what people call it.
        paper: who, and where it is found.
        file: of the package, that has it.
        idea: in a line.
        use: when, by our figures.
        cost: of a step on the robot; three figures are those of ball, Meta-World and kitchen, by
            benchmarks/method_cost.py.
        lines: of the table; none where it does not change what is done in a world without a link or a camera.
        option: by which it is used, where there are no lines.
        why: there are no lines.
    """

    name: str
    paper: str
    file: str
    idea: str
    use: str
    cost: str
    lines: Listed[Line] = ()
    option: str = ""
    why: str = ""

    @property
    def run(self) -> str:
        """The options of `adahi evaluate TASK`, or what it is instead, by which it is run."""
        ways = ", ".join(f"--methods {line.key}" for line in self.lines)
        return self.option or ways.replace("switched/{task}", "switched/TASK")


@dataclass(frozen=True)
class _Literature(Schema):
    """What literature.yaml says.

    Attributes:
        methods: of papers, in the order of the docs.
        beside: the methods that they are compared with, in the same table.
    """

    methods: Listed[PaperMethod]
    beside: Listed[Line]


_LISTED = load(_Literature, Path(__file__).with_name("literature.yaml"))
LITERATURE = _LISTED.methods


ADDED: Registry[PaperMethod] = Registry("adahi_ros.literature", {})
"""Methods that other packages add."""


def known_methods() -> tuple[PaperMethod, ...]:
    """Return the methods of papers, those of other packages last.

    Raises:
        RegistryError: one of another package cannot be imported.
    """
    return (*LITERATURE, *ADDED.values())


def lines(methods: Iterable[PaperMethod] = LITERATURE) -> tuple[Line, ...]:
    """Return the lines of the table."""
    return (*_LISTED.beside, *(line for each in methods for line in each.lines))
