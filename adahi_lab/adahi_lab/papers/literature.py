# SPDX-License-Identifier: Apache-2.0
"""The implemented methods of papers: their files, options, uses and costs.

literature.yaml lists them, here and in the rooms of papers; `adahi methods` prints the list, and `adahi lab
table --literature` measures it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from adahi_lab.methods.method_names import ALIASES
from adahi_lab.papers.rooms import ROOMS, of_rooms
from adahi_ros.core.registry import Registry
from adahi_ros.core.schema import Listed, Schema, load, one_of

PUBLISHED, ADAPTED, IDEA = FIDELITIES = ("as published", "adapted", "idea only")


@dataclass(frozen=True)
class Line(Schema):
    """A line of the table.

    Attributes:
        name: in the table.
        method: as `parse_methods` takes it; its policies are its own, see `Alias`.
    """

    name: str
    method: str

    @property
    def task(self) -> str:
        """A task that has its policies, where not every task does; empty for any."""
        return ALIASES[self.method].task if self.method in ALIASES else ""

    @property
    def one_task(self) -> bool:
        """Whether its policies fit that task alone, as it names their folder."""
        return self.method in ALIASES and "{task}" not in (ALIASES[self.method].checkpoints or "{task}")


@dataclass(frozen=True)
class PaperMethod(Schema):
    """A method of a paper.

    Attributes:
        name: in the paper, or its usual name.
        paper: authors and source.
        file: of the package.
        idea: in a line.
        use: when to use it, by our figures.
        fidelity: how near it is to the paper, one of `FIDELITIES`.
        differs: what differs from the paper; empty where it is as published.
        cost: of a step on the robot; three figures are those of ball, Meta-World and kitchen, by
            adahi_lab/papers/method_cost.py.
        lines: of the table; none where it has no effect in a world without a link or a camera.
        option: by which it is used, where there are no lines.
        why: reason why there are no lines.
        says: the figures of its abstract, if it has a row in the table of figures.
        here: ours.
        because: why they differ.
        by: the commands that make ours.
    """

    name: str
    paper: str
    file: str
    idea: str
    use: str
    cost: str
    fidelity: Annotated[str, one_of(FIDELITIES)]
    differs: str = ""
    lines: Listed[Line] = ()
    option: str = ""
    why: str = ""
    says: str = ""
    here: str = ""
    because: str = ""
    by: Listed[str] = ()

    def __post_init__(self) -> None:
        for name in ("here", "because", "by"):
            if bool(getattr(self, name)) != bool(self.says):
                allowed = "be given" if self.says else "be left out"
                raise ValueError(
                    f"{name}: {getattr(self, name)!r}, must {allowed} where says is {self.says!r}"
                )
        if (self.fidelity == PUBLISHED) == bool(self.differs):
            allowed = "be empty" if self.differs else "say what differs from the paper"
            raise ValueError(f"differs: {self.differs!r}, must {allowed} where it is {self.fidelity}")

    @property
    def run(self) -> str:
        """The options of `adahi evaluate TASK` that run it, or another command."""
        return self.option or ", ".join(f"--methods {line.method}" for line in self.lines)


@dataclass(frozen=True)
class _Literature(Schema):
    """The content of literature.yaml.

    Attributes:
        methods: of papers.
        beside: reference methods in the same table.
    """

    methods: Listed[PaperMethod]
    beside: Listed[Line] = ()


FILE = "literature.yaml"
_LISTED = (load(_Literature, ROOMS / FILE), *of_rooms(_Literature, FILE))
LITERATURE = tuple(method for listed in _LISTED for method in listed.methods)
BESIDE = tuple(line for listed in _LISTED for line in listed.beside)


ADDED: Registry[PaperMethod] = Registry("adahi_lab.literature", {})
"""Methods from other packages."""


def known_methods() -> tuple[PaperMethod, ...]:
    """Return the methods of papers, those of other packages last.

    Raises:
        RegistryError: a method of another package cannot be imported.
    """
    return (*LITERATURE, *ADDED.values())


def lines(methods: Iterable[PaperMethod] = LITERATURE) -> tuple[Line, ...]:
    """Return the lines of the table."""
    return (*BESIDE, *(line for each in methods for line in each.lines))
