# SPDX-License-Identifier: Apache-2.0
"""Limits of joints from a robot's description."""

from __future__ import annotations

import math
from collections.abc import Collection
from xml.etree import ElementTree

from adahi_ros.core.schema import shown
from adahi_ros.safety.entry_limits import CONTINUOUS, ENDLESS, check_order, checked

BOUNDED = ("revolute", "prismatic")
REFUSED = ("<!DOCTYPE", "<!ENTITY")  # a few lines of entities expand to gigabytes


def urdf_text(content: bytes) -> str:
    """Return the text of a URDF.

    Raises:
        ValueError: it is not UTF-8, or has entities.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8, must be a URDF in it") from None
    for refused in REFUSED:
        if refused in text:
            raise ValueError(f"{refused}: must not be in a URDF")
    return text


def urdf_limits(content: bytes, wanted: Collection[str]) -> dict[str, dict[str, float]]:
    """Return every joint that turns or slides by name, and the limits of wanted ones by field.

    They are those of `<limit>`, narrowed by the soft limits of a `<safety_controller>`. A continuous joint
    has infinite position limits. URDF has no acceleration limits. Faults of other joints do not matter.

    Raises:
        ValueError: no URDF, or a wanted limit is missing or no number; names joint and attribute.
    """
    text = urdf_text(content)
    try:
        robot = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"not XML: {error}") from None
    if robot.tag != "robot":
        raise ValueError(f"<{robot.tag}>: must be <robot>")
    found: dict[str, dict[str, float]] = {}
    for joint in robot.findall("joint"):
        kind, name = joint.get("type"), joint.get("name", "")
        if kind not in (*BOUNDED, "continuous"):
            continue
        if name in found and name in wanted:
            raise ValueError(f"{name}: there twice, must be one joint")
        found[name] = _limits(name, joint, kind in BOUNDED) if name in wanted else {}
    return found


def _limits(name: str, joint: ElementTree.Element, bounded: bool) -> dict[str, float]:
    limit = joint.find("limit")
    if limit is None:
        if bounded:
            raise ValueError(f"{name}.limit: missing")
        return {**ENDLESS, CONTINUOUS: 1.0}
    limits: dict[str, float] = {
        quantity: checked(f"{name}.{quantity}", quantity, _number(f"{name}.{quantity}", limit.get(quantity)))
        for quantity in ("velocity", "effort")
        if quantity in limit.attrib
    }
    if not bounded:
        return limits | ENDLESS | {CONTINUOUS: 1.0}
    limits["position_low"], limits["position_high"] = _range(name, joint, limit)
    return limits


def _range(name: str, joint: ElementTree.Element, limit: ElementTree.Element) -> tuple[float, float]:
    ends = {end: _position(f"{name}.{end}", limit.get(end)) for end in ("lower", "upper")}
    soft = joint.find("safety_controller")
    if soft is not None:
        for end, narrower in (("lower", max), ("upper", min)):
            attribute = f"soft_{end}_limit"
            if attribute in soft.attrib:
                ends[end] = narrower(ends[end], _position(f"{name}.{attribute}", soft.get(attribute)))
    check_order(f"{name}.limit", ends["lower"], ends["upper"])
    return ends["lower"], ends["upper"]


def _position(where: str, text: str | None) -> float:
    return checked(where, "position", _number(where, text))


def _number(where: str, text: str | None) -> float | str:
    if text is None:
        raise ValueError(f"{where}: missing")
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{where}: {shown(text)}, must be a number") from None
    return text if math.isnan(number) else number
