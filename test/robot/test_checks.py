"""What `adahi doctor` finds in what was seen: each check with something good and something bad."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adahi_ros.contract.contract import JOINT_STATE
from adahi_ros.contract.parsing import load_contract
from adahi_ros.contract.published import Endpoint
from adahi_ros.core.health_level import Level
from adahi_ros.core.signature import OBSERVATION, Feature, Ranges, Signature
from adahi_ros.protocol.description import Described, Description
from adahi_ros.robot.checks import Finding, Robot, Surroundings, check
from adahi_ros.robot.compatibility import wants_of_plans
from adahi_ros.safety.limits_file import load_limits
from adahi_ros.safety.named_limits import limits_path

CONTRACT = load_contract("so101")
WANTS = wants_of_plans(CONTRACT, load_limits(limits_path("so101"), CONTRACT.commanded_names))
ARM, GRIPPER = "/arm_controller/joint_trajectory", "/gripper_controller/gripper_cmd"
TRAJECTORY, GOAL = "trajectory_msgs/msg/JointTrajectory", "control_msgs/action/GripperCommand"
DESCRIBE = "/describe_target"
GOALS = {f"{GRIPPER}/_action/send_goal": [f"{GOAL}_SendGoal"]}
OTHERS: dict[str, list[str]] = {"/server/describe_target": []}
SIGNATURE = Signature(1, 50, 6, (Feature(OBSERVATION, 6),))
TARGET = Description("act", "replace", SIGNATURE)
DRIVER = Endpoint("/driver", JOINT_STATE)
OWN = WANTS.offered.quantities[OBSERVATION]
MIDDLE = np.tile((OWN.low + OWN.high) / 2.0, (3, 1))
ROBOT = Robot(
    "/draft_policy",
    CONTRACT,
    {"/joint_states": CONTRACT.channels["joint_states"]},
    {ARM: TRAJECTORY, GRIPPER: GOAL},
    WANTS,
    limited="",
    service=DESCRIBE,
    ahead=True,
    executed=50,
    deadline_s=0.02,
)
SEEN = Surroundings(
    3,
    environment={},
    nodes=["/driver"],
    domains=[],
    middleware="rmw_fastrtps_cpp",
    other_vendors=[],
    leads_s={"/joint_states": -0.001},
    published={"/joint_states": [DRIVER]},
    subscribed={ARM: [Endpoint("/controller", TRAJECTORY)]},
    services={DESCRIBE: [], **GOALS},
    health={"/draft_policy: control": (Level.OK, "stepping")},
    rates={"/joint_states": 30.0},
    observations=90,
    values=MIDDLE,
    measured_twice="",
    driver="",
    free_bytes=9e9,
    described=Described(0, TARGET),
    absence="",
    trips_s=[0.01],
    versions="adahi_ros 1",
    gpu="H200, 9 MiB free",
)


def bad(name: str, seen: Surroundings = SEEN, robot: Robot | None = ROBOT) -> list[Finding]:
    """Return what a check finds that is not well; no other check finds anything."""
    found = [(check_name, each) for check_name, each in check(seen, robot) if each.level is not Level.OK]
    assert {check_name for check_name, _ in found} <= {name}
    return [each for _, each in found]


def only(name: str, seen: Surroundings = SEEN, robot: Robot | None = ROBOT) -> tuple[str, str]:
    (found,) = bad(name, seen, robot)
    return found.level.name, found.text


def test_all_is_well_in_the_order_in_which_it_matters() -> None:
    found = list(check(SEEN, ROBOT))
    assert {each.level for _, each in found} == {Level.OK}
    assert not [each for _, each in found if each.action]
    names = "domain middleware clocks topics observations publishers units limits controller verifier"
    last = ["round trip", "health", "versions", "gpu", "disk"]
    assert [name for name, _ in found] == [*names.split(), *last]


def test_without_parameters_only_the_machine_is_looked_at() -> None:
    names = ["domain", "middleware", "versions", "gpu", "disk"]
    assert [name for name, _ in check(SEEN, None)] == names


def test_a_domain_without_nodes_names_those_in_use() -> None:
    (found,) = bad("domain", replace(SEEN, nodes=[], domains=[7, 9]))
    assert found == (
        Level.ERROR,
        "domain 3 has no other node",
        "wait and repeat; if the programs in domain 7, 9 are yours: export ROS_DOMAIN_ID=...",
    )
    (found,) = bad("domain", replace(SEEN, nodes=[]))
    assert "firewall" in found.action


def test_settings_of_the_middleware_that_find_nobody_are_named() -> None:
    alone = replace(SEEN, environment={"ROS_LOCALHOST_ONLY": "1"})
    assert only("middleware", alone)[1].startswith("ROS_LOCALHOST_ONLY is 1: nodes of other machines")
    other = replace(SEEN, other_vendors=["/camera"])
    assert only("middleware", other)[1] == "/camera: another middleware than rmw_fastrtps_cpp"


@pytest.mark.parametrize(
    ("lead_s", "finding"),
    [
        (0.1, ("WARN", "the clock of /x is 0.1 s ahead")),
        (-3.0, ("ERROR", "the clock of /x is 3 s behind, or its messages are late")),
    ],
)
def test_a_clock_that_differs_is_named(lead_s: float, finding: tuple[str, str]) -> None:
    assert only("clocks", replace(SEEN, leads_s={"/x": lead_s})) == finding


def test_a_simulators_clock_belongs_to_use_sim_time() -> None:
    fault = "use_sim_time is true, but /clock has no publisher: time stands still"
    assert only("clocks", robot=replace(ROBOT, simulated=True)) == ("ERROR", fault)
    clock = {**SEEN.published, "/clock": [Endpoint("/gazebo", "rosgraph_msgs/msg/Clock")]}
    fault = "/gazebo publishes /clock, but use_sim_time is false"
    assert only("clocks", replace(SEEN, published=clock)) == ("WARN", fault)
    assert not bad("clocks", replace(SEEN, published=clock), replace(ROBOT, simulated=True))


def test_a_topic_that_is_missing_or_slow_is_named() -> None:
    missing = replace(SEEN, rates={}, published={"/joint_state": [DRIVER]})
    fault = "/joint_states has no publisher; there is /joint_state (/driver)"
    assert only("topics", missing) == ("ERROR", fault)
    assert bad("topics", missing)[0].action.startswith("start its driver, ")
    (runs,) = bad("topics", replace(SEEN, rates={}))
    assert (runs.text.endswith("but no message arrives"), "qos" in runs.action) == (True, True)
    slow = "/joint_states has 20 messages per second, fps is 30"
    assert only("topics", replace(SEEN, rates={"/joint_states": 20.0})) == ("WARN", slow)


def test_what_makes_no_observation_is_repeated() -> None:
    fault = "3 times joint_states.name: lacks elbow"
    refused, missed = {"joint_states.name": fault}, {"joint_states": "9 times joint_states: no sample"}
    assert only("observations", replace(SEEN, refused=refused)) == ("WARN", fault)
    assert only("observations", replace(SEEN, missed=missed)) == ("WARN", missed["joint_states"])
    assert only("topics", replace(SEEN, rates={}, missed=missed))[0] == "ERROR"  # is said once
    assert only("observations", replace(SEEN, refused=refused, missed=missed))[1] == fault  # likewise
    none = [each[:2] for each in bad("observations", replace(SEEN, refused=refused, observations=0))]
    assert none == [(Level.ERROR, fault), (Level.ERROR, "none can be made")]


def test_images_that_are_spoiled_are_named() -> None:
    seen = "front: 128 x 128 pixels are stretched to 96 x 128"
    assert only("observations", replace(SEEN, pictures=[seen])) == ("WARN", seen)


def test_two_programs_that_do_the_same_are_named() -> None:
    twice = replace(SEEN, measured_twice="elbow on /joint_states, of /a, /b; end one of these")
    assert only("publishers", twice)[1].startswith("two programs measure elbow on /joint_states, of /a")
    command = Endpoint("/draft_policy", TRAJECTORY)
    both = {**SEEN.published, ARM: [command, Endpoint("/moveit", TRAJECTORY)]}
    seen = replace(SEEN, published=both)
    assert only("publishers", seen) == ("ERROR", f"/moveit sends commands on {ARM}")
    assert not bad("publishers", seen, replace(ROBOT, shared=True))
    assert not bad("publishers", replace(SEEN, published={**SEEN.published, ARM: [command]}))


def test_numbers_beyond_the_limits_or_unlike_the_data_are_named() -> None:
    beyond = MIDDLE.copy()
    beyond[:, 0] = OWN.high[0] + 0.1 * (OWN.high[0] - OWN.low[0])
    beyond[:, 2] = OWN.high[2] + 0.2 * (OWN.high[2] - OWN.low[2])
    level, text = only("units", replace(SEEN, values=beyond))
    assert (level, text.startswith("position.elbow_flex is ")) == ("WARN", True)
    assert text.endswith("; also beyond: position.shoulder_pan")
    beyond[:, 0] = 4.0 * OWN.high[0]
    assert only("units", replace(SEEN, values=beyond))[0] == "ERROR"
    ranges = Ranges(minimum=(20.0,) * 6, maximum=(90.0,) * 6)
    described = Described(0, replace(TARGET, feature_ranges=ranges))
    rad = replace(SEEN, values=np.full((3, 6), 0.9), described=described)
    found = [finding for name, finding in check(rad, ROBOT) if name == "units"][-1]
    assert ("rad instead of degrees" in found.text, "`apply`" in found.action) == (True, True)
    apart = Ranges(minimum=(-10.0, 50.0, *OWN.low[2:]), maximum=(10.0, 70.0, *OWN.high[2:]))
    swapped = MIDDLE.copy()
    swapped[:, :2] = 60.0, 0.0
    described = Described(0, replace(TARGET, feature_ranges=apart))
    (order,) = bad("units", replace(SEEN, values=swapped, described=described))
    assert ("swapped with" in order.text, "`select`" in order.action) == (True, True)


def test_missing_limits_are_named() -> None:
    assert only("limits", robot=replace(ROBOT, limited="no limits")) == ("WARN", "no limits")


def test_a_deadman_on_another_topic_is_named() -> None:
    robot, pad = replace(ROBOT, enable="/arm/enable"), [Endpoint("/pad", "std_msgs/msg/Bool")]
    seen = {"/joint_states": [DRIVER], "/pedal": pad}
    assert not bad("deadman", replace(SEEN, published=seen), robot)
    (found,) = bad("deadman", replace(SEEN, published={**seen, "/enable": pad}), robot)
    assert found.text == "nothing publishes /arm/enable; there is /enable (/pad)"
    assert not bad("deadman", replace(SEEN, published={**seen, "/arm/enable": pad}), robot)


def test_commands_that_nobody_takes_are_named() -> None:
    near = "/arm_controler/joint_trajectory"
    other = replace(SEEN, subscribed={near: [Endpoint("/controller", TRAJECTORY)]})
    fault = f"no controller takes {TRAJECTORY} on {ARM}; there is {near} (/controller)"
    assert only("controller", other) == ("ERROR", fault)
    assert only("controller", replace(SEEN, services={DESCRIBE: []}))[1].endswith(f"{GOAL} on {GRIPPER}")
    parallel = {f"{GRIPPER}/_action/send_goal": ["control_msgs/action/ParallelGripperCommand_SendGoal"]}
    fault = f"the controller of {GRIPPER} takes control_msgs/action/ParallelGripperCommand, "
    assert only("controller", replace(SEEN, services={DESCRIBE: [], **parallel})) == (
        "ERROR",
        f"{fault}the contract says {GOAL}",
    )
    assert only("controller", replace(SEEN, driver="/mode.mode: 1, must be 7")) == (
        "ERROR",
        "/mode.mode: 1, must be 7",
    )


def test_a_verifier_that_is_missing_silent_or_other_is_named() -> None:
    gone = replace(SEEN, described=None, trips_s=[], services={**GOALS, **OTHERS})
    (found,) = bad("verifier", gone)
    assert found.text == "no verifier: /describe_target is not there; there is /server/describe_target"
    assert "--verifier-namespace" in found.action
    assert "ROS_DOMAIN_ID" in bad("verifier", replace(gone, services=GOALS))[0].action
    loads = replace(gone, services={**GOALS, "/target_verifier/load_target": []})
    assert "wait until it has loaded its policy" in bad("verifier", loads)[0].action
    silent = replace(SEEN, described=None, trips_s=[])
    assert only("verifier", silent)[1] == "the verifier does not answer"
    unread = replace(SEEN, described=Described(0, None, "rate_hz: nan"))
    assert only("verifier", unread)[1] == "the verifier's description: rate_hz: nan"
    other = "/verify_draft has the reliability reliable"
    assert only("verifier", replace(SEEN, absence=other)) == ("ERROR", other)
    old = replace(SEEN, described=Described(0, replace(TARGET, protocol=7)))
    assert only("verifier", old)[1].startswith("the verifier does not fit: protocol: the robot's is 8, the")


def test_a_round_trip_that_outlasts_the_plan_or_the_deadline_is_named() -> None:
    slow = replace(SEEN, trips_s=[0.9])
    assert only("round trip", slow)[1].startswith("replies take 0.9 s, and half of a plan is 0.83 s")
    waits = replace(ROBOT, ahead=False)
    assert not bad("round trip", robot=waits)
    fault = "it takes 900 ms, to which the time of the target comes; deadline_s is 0.02"
    assert only("round trip", slow, waits) == ("ERROR", fault)


def test_what_nodes_report_is_repeated() -> None:
    held = {"/draft_policy: control": (Level.WARN, "held: not enabled")}
    assert only("health", replace(SEEN, health=held)) == (
        "WARN",
        "/draft_policy: control: held: not enabled",
    )


def test_a_broken_gpu_and_a_full_disk_are_named() -> None:
    assert only("gpu", replace(SEEN, gpu="no GPU can be used: timeout"))[0] == "WARN"
    for free_bytes, level in ((1e9, "WARN"), (1e8, "ERROR")):
        assert only("disk", replace(SEEN, free_bytes=free_bytes))[0] == level
