"""The policies of one verifier, by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adahi_ros.core.signature import OBSERVATION, Feature, Signature
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.request import RequestError, RequestFault
from adahi_ros.server.service import TARGETS_MOST, LoadedTarget, ServedTargets

SIGNATURE = Signature(2, 4, 2, (Feature(OBSERVATION, 3),), parameters=7)


def target(name: str, signature: Signature = SIGNATURE, fingerprint: str = "1" * 16) -> LoadedTarget:
    described = Description(name, "replace", signature, policy_fingerprint=fingerprint)
    return LoadedTarget(None, described)  # type: ignore[arg-type]


def test_a_request_gets_the_target_that_it_names_or_the_first() -> None:
    arm, leg = target("arm"), target("leg")
    targets = ServedTargets(arm)
    targets.put(leg)
    assert (targets.named(""), targets.named("arm"), targets.named("leg")) == (arm, arm, leg)
    assert targets.names == ("arm", "leg")
    with pytest.raises(RequestError, match=r"^target: 'eye', must be one of 'arm', 'leg'$") as refusal:
        targets.named("eye")
    assert refusal.value.fault is RequestFault.UNKNOWN_TARGET


def test_a_new_version_replaces_an_old_one_that_looks_alike_to_robots() -> None:
    targets = ServedTargets(target("arm"))
    targets.put(target("leg"))
    newer = target("arm", replace(SIGNATURE, parameters=8), "2" * 16)
    targets.put(newer)
    assert targets.named("") is newer
    assert targets.names == ("arm", "leg")
    with pytest.raises(ValueError, match=r"^target: 'arm', is served and reads or proposes something else"):
        targets.put(target("arm", replace(SIGNATURE, horizon=8)))
    assert targets.named("arm") is newer


def test_one_is_served_no_more_but_who_names_none_goes_on_with_the_first() -> None:
    targets = ServedTargets(target("arm"))
    targets.put(target("leg"))
    targets.remove("leg")
    with pytest.raises(ValueError, match=r"^target: 'leg', must be one of 'arm'$"):
        targets.remove("leg")
    with pytest.raises(ValueError, match=r"^target: 'arm', is the default target, must be another one$"):
        targets.remove("arm")
    assert targets.named("").description.target == "arm"


def test_there_is_room_for_so_many() -> None:
    targets = ServedTargets(target("0"))
    for number in range(1, TARGETS_MOST):
        targets.put(target(str(number)))
    with pytest.raises(ValueError, match=f"must be one of the {TARGETS_MOST} that are served"):
        targets.put(target("one more"))
