# SPDX-License-Identifier: Apache-2.0
"""Names of methods: reads and prints them.

A name is an entry of `ALIASES`, or

    PROPOSER[:NAME=VALUE]*[+GATE[:NAME=VALUE]*[@THRESHOLD]][/RULE[:NAME=VALUE]*]

The older grammars in `FORMER` are still accepted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adahi_lab.calibration.parameter_file import WITHOUT_THRESHOLD
from adahi_lab.methods.actors import ALONE, DRAFT, follows_plan
from adahi_lab.methods.method import Method
from adahi_lab.methods.oracles import ORACLES
from adahi_lab.papers.rooms import of_rooms
from adahi_ros.acceptance.registry import ACCEPTANCES, BY_TARGET
from adahi_ros.core.plan import BLENDS, LATEST
from adahi_ros.core.registry import RegistryError, arguments_of
from adahi_ros.core.schema import Schema, load
from adahi_ros.core.texts import abridged
from adahi_ros.gates.registry import GATES
from adahi_ros.proposers.registry import PROPOSERS
from adahi_ros.robot.loop import WAIT_POLICIES
from adahi_ros.server.verifier import AGREEMENTS

COOL = 0.3  # a temperature at which the draft rarely makes large errors
LONGEST = 32  # characters of a number
SHOWN = 100  # characters of a refused name in its error
LONGEST_DELAY, LONGEST_HORIZON = 99, 9999  # control steps
ONLINE = "online"  # a gate that learns its threshold itself


@dataclass(frozen=True)
class Alias(Schema):
    """What a name stands for.

    Attributes:
        method: by the grammar.
        label, about, checkpoints, backend: see `Method`.
        task: one that has its policies, where not every task does; empty for any.
    """

    method: str
    label: str
    about: str = ""
    checkpoints: str = ""
    backend: str = ""
    task: str = ""


_FILE = "aliases.yaml"
OF_PAPERS = {name: alias for room in of_rooms(dict[str, Alias], _FILE) for name, alias in room.items()}
ALIASES = {**load(dict[str, Alias], Path(__file__).with_name(_FILE)), **OF_PAPERS}
MOST_VERIFIERS = 16
OPTIONS_OF_PLANS = ("delay", "blend", "agreement", "wait", "verifiers")
OPTIONS_OF_DRAFTS = ("horizon", "temperature")

ARGUMENTS = r"(?::\w+=[^:@=]+)*"
NAME = re.compile(rf"(\w+)((?::\w+=[^:@=+]+)*)(?:\+(\w+)({ARGUMENTS})(?:@([^:@]+))?)?")
ACCEPTANCE = re.compile(rf"/(\w+)({ARGUMENTS})$")
_STEPS, _AT = r"([1-9][0-9]{0,3})", r"(@[^:@]+)?"
_BLENDED = tuple(name for name in BLENDS if name != LATEST)


def _periodic(found: re.Match[str]) -> Alias:
    kind, steps, delay, agreement = found.groups(default="")
    label, how = {
        "plan": ("Plan", "blindly"),
        "corrector": ("Corrected plan", "corrected at every step"),
        "intent": ("Intent", "its intent alone"),
    }.get(kind, (kind.replace("_", " ").capitalize(), f"those that overlap blended by {kind}"))
    label, about = f"{label}/{steps}", f"the target's plans, a new one every {steps} steps, {how}"
    options = f":blend={kind}" if kind in _BLENDED else ""
    if delay:
        options += f":delay={delay}"
        label, about = f"{label}+{delay}", f"{about}, replies {delay} steps late"
    if agreement not in ("", "none"):
        options += f":agreement={agreement}"
        label, about = f"{label} {agreement}", f"{about}; {AGREEMENTS[agreement]}"
    return Alias(f"{'plan' if kind in _BLENDED else kind}{options}+age@{int(steps) - 1}", label, about)


def _gated_proposer(found: re.Match[str]) -> Alias:
    proposer, horizon, gate, rule, arguments, at = found.groups(default="")
    horizon = f":horizon={horizon}" if horizon else ""
    return Alias(f"{proposer}{horizon}+{gate}{arguments}{at}{rule}", found[0])


def _gated_draft(found: re.Match[str]) -> Alias:
    gate, rule, proposer, arguments = found.groups(default="")
    return Alias(f"{proposer or DRAFT}+{gate}/{rule}{arguments}", found[0])


FORMER: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Alias]], ...] = (
    (
        re.compile(
            rf"(plan|corrector|intent|{'|'.join(_BLENDED)})_{_STEPS}"
            rf"(?:\+([1-9][0-9]?)(?::({'|'.join(AGREEMENTS)}))?)?",
            re.ASCII,
        ),
        _periodic,
    ),
    (
        re.compile(
            rf"(plan|corrector|draft_checks_plan)(?:_{_STEPS})?"
            rf":(\w+?)(/\w+)?({ARGUMENTS}){_AT}",
            re.ASCII,
        ),
        _gated_proposer,
    ),
    (re.compile(rf"(\w+):(\w+)(?::(\w+))?({ARGUMENTS})"), _gated_draft),
)
"""Older grammars, each rewritten to the present one: plan_K, corrector_K, intent_K and BLEND_K with +L and
:AGREEMENT; PROPOSER:GATE; GATE:RULE."""

GRAMMAR = (
    "PROPOSER[:NAME=VALUE]*[+GATE[:NAME=VALUE]*[@THRESHOLD]][/RULE[:NAME=VALUE]*] of the proposers "
    f"{', '.join(PROPOSERS)}, the gates {', '.join(GATES)} and the rules {', '.join(ACCEPTANCES)}; or "
    "GATE:RULE, plan:GATE or corrector:GATE; or plan_K, corrector_K, intent_K or BLEND_K; where replies are "
    f"L steps late plan_K+L or plan_K+L:AGREEMENT, with L from 1 to {LONGEST_DELAY}, a BLEND of "
    f"{', '.join(_BLENDED)} and an AGREEMENT of {', '.join(AGREEMENTS)}"
)
ORACLE_GRAMMAR = f"{', '.join(OF_PAPERS)}, any of these with a gate of {', '.join(ORACLES)}"


def parsed(name: str) -> Method | None:
    """Return the method that a name means; None for other names.

    Raises:
        ValueError: a number in it is not finite or too long, an argument is given twice, or is unknown to
            the method.
    """
    alias = ALIASES.get(name) or _of_template(name)
    for pattern, rewritten in FORMER:
        found = pattern.fullmatch(name) if alias is None else None
        if found is not None:
            alias = rewritten(found)
    return _declared(name, alias or Alias(name, name))


def is_template(name: str) -> bool:
    """Return whether a name is that of an alias with placeholders, see `for_task`."""
    return name in ALIASES and "{" in ALIASES[name].method


def _of_template(name: str) -> Alias | None:
    """Return an alias for a name that is a template's with its placeholders replaced."""
    for alias in ALIASES.values():
        parts = re.split(r"\{\w+\}", alias.method)
        if len(parts) > 1 and re.fullmatch("[^:@=]+".join(map(re.escape, parts)), name):
            return replace(alias, method=name)
    return None


def _of_plans(rule: str) -> bool:
    try:
        return rule in ACCEPTANCES and ACCEPTANCES[rule].of_plans
    except RegistryError:  # it needs a package that is not installed
        return False


def _declared(name: str, alias: Alias) -> Method | None:
    text, acceptance, acceptance_arguments = _without_acceptance(alias.method)
    found = NAME.fullmatch(text)
    if found is None:
        return None
    proposer, options, gate, gate_arguments, threshold = found.groups(default="")
    gate = gate or "never"
    if (proposer not in PROPOSERS and proposer not in ALONE) or (gate not in GATES and gate not in ORACLES):
        return None
    at = 0.0 if gate in (*WITHOUT_THRESHOLD, ONLINE) else None
    if threshold:
        at = named_number(name, "threshold", threshold)
        if at is None:
            return None
    by_plans = follows_plan(proposer)
    if by_plans and acceptance and not _of_plans(acceptance):
        allowed = " or ".join(filter(_of_plans, ACCEPTANCES))
        raise ValueError(f"{_shown(name)}: rule: {acceptance}, must be {allowed} where plans are executed")
    return Method(
        name,
        alias.label,
        alias.about,
        proposer,
        gate,
        named_arguments(name, gate_arguments),
        at,
        acceptance or ("replace" if by_plans else "speculative"),
        named_arguments(name, acceptance_arguments),
        checkpoints=alias.checkpoints,
        backend=alias.backend,
        **_options(name, proposer, named_arguments(name, options), by_plans),
    )


def _without_acceptance(text: str) -> tuple[str, str, str]:
    """Split off the rule and its arguments; a file's path in an argument may contain slashes."""
    for start in (each.start() for each in re.finditer("/", text)):
        found = ACCEPTANCE.match(text, start)
        if found is not None and (found[1] in ACCEPTANCES or found[1] == BY_TARGET):
            return text[:start], found[1], found[2]
    return text, "", ""


def _options(name: str, proposer: str, given: Mapping[str, Any], by_plans: bool) -> dict[str, Any]:
    """Return fields of a `Method` from the options of its proposer, and the proposer's own arguments.

    Raises:
        ValueError: names the option, its value and what is allowed.
    """
    own = {} if proposer in ALONE else arguments_of(PROPOSERS[proposer])
    arguments = {each: own[each].checked(value) for each, value in given.items() if each in own}
    given = {each: value for each, value in given.items() if each not in own}
    known = (*(OPTIONS_OF_PLANS if by_plans else OPTIONS_OF_DRAFTS), *own)
    choices = {"blend": tuple(BLENDS), "agreement": tuple(AGREEMENTS), "wait": WAIT_POLICIES}
    most = {"delay": LONGEST_DELAY, "horizon": LONGEST_HORIZON, "verifiers": MOST_VERIFIERS}
    for option, value in given.items():
        allowed = None
        if option not in known:
            raise ValueError(f"{_shown(name)}: {option}: unknown, must be one of {', '.join(known)}")
        if option in choices and value not in choices[option]:
            allowed = f"one of {', '.join(choices[option])}"
        if option in most and value not in range(1, most[option] + 1):
            allowed = f"a whole number from 1 to {most[option]}"
        if option == "temperature" and not (type(value) is float and value > 0.0):
            allowed = "a number above 0"
        if allowed is not None:
            raise ValueError(f"{_shown(name)}: {option}: {value!r}, must be {allowed}")
    fields = {"wait": "wait_policy", "temperature": "draft_temperature"}
    named = {fields.get(key, key): int(value) if key in most else value for key, value in given.items()}
    return named | {"proposer_arguments": arguments}


def printed(method: Method) -> str:
    """Return a complete method's name by the grammar, without aliases; for a user's class, its own name."""
    if method.own is not None:
        return method.name
    options = {
        "horizon": method.horizon,
        "temperature": method.draft_temperature,
        "delay": method.delay or None,
        "blend": None if method.blend == LATEST else method.blend,
        "agreement": None if method.agreement == "none" else method.agreement,
        "wait": None if method.wait_policy == "ahead" else method.wait_policy,
        "verifiers": None if method.verifiers == 1 else method.verifiers,
    }
    options = {name: value for name, value in options.items() if value is not None}
    text = method.proposer + _printed({**options, **method.proposer_arguments})
    text += f"+{method.gate}{_printed(method.gate_arguments)}"
    if method.at is not None:
        text += f"@{repr(method.at).removesuffix('.0')}"
    return f"{text}/{method.acceptance}{_printed(method.acceptance_arguments)}"


def _printed(arguments: Mapping[str, object]) -> str:
    return "".join(f":{name}={value}" for name, value in arguments.items())


def _shown(name: str) -> str:
    return abridged(name, SHOWN)


def named_number(method: str, field: str, text: str) -> float | None:
    """Return the number in a text of a method's name; None where it is no number.

    Raises:
        ValueError: it is infinite, not a number to IEEE 754, or too long; names method, field and text.
    """
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number) or len(text) > LONGEST:
        about = f"{_shown(method)}: {field}: {abridged(text, LONGEST)}"
        raise ValueError(f"{about}, must be a finite number of at most {LONGEST} characters")
    return number


def named_arguments(method: str, given: str) -> dict[str, float | str]:
    """Return the arguments :NAME=VALUE in a method's name, as numbers where possible.

    `:steps=400` is an integer, which an argument that is a float takes as well.

    Raises:
        ValueError: a number is not finite or too long, or an argument is given twice.
    """
    pairs = [each.split("=") for each in given.split(":")[1:]]
    arguments: dict[str, float | str] = {}
    for key, text in pairs:
        number = named_number(method, key, text)
        arguments[key] = text if number is None else int(text) if text.isdecimal() else number
    if len(arguments) < len(pairs):
        raise ValueError(f"{_shown(method)}: must not name an argument twice")
    return arguments
