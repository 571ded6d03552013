"""The launch files as `ros2 launch` reads them; needs launch_ros, which no wheel brings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from adahi_lab.nodes.method_files import parameter_files
from adahi_ros.core.assets import asset, asset_files
from test.nodes.launches import FILES, FIRST, JOBS, NODES, description_of

OURS = ("adahi_ros", "adahi_lab")

launch = pytest.importorskip("launch", reason="launch is not on PyPI; needs a sourced ROS 2")
pytest.importorskip("launch_ros", reason="launch_ros is not on PyPI; needs a sourced ROS 2")


def nodes_of(description: Any, context: Any) -> Iterator[Any]:
    """Yield the nodes of a description, of its groups and of what it includes, as they would be started."""
    from launch.actions import ExecuteLocal, IncludeLaunchDescription

    for entity in description.entities:
        if isinstance(entity, ExecuteLocal):
            yield entity
        elif (
            not isinstance(entity, IncludeLaunchDescription)
            or "dds" not in entity.launch_description_source.location
        ):
            yield from nodes_of(SimpleNamespace(entities=entity.visit(context) or ()), context)


@pytest.mark.parametrize("job", JOBS)
def test_every_argument_has_a_description_and_all_but_one_a_default(job: str) -> None:
    arguments = description_of(job).get_launch_arguments()
    assert arguments
    for argument in arguments:
        assert argument.description, argument.name
    without = {argument.name for argument in arguments if argument.default_value is None}
    assert without == ({"params_file"} if job == "robot" else set())


def test_all_takes_the_arguments_of_every_job() -> None:
    def names(job: str) -> set[str]:
        return {argument.name for argument in description_of(job).get_launch_arguments()}

    ours = {"method", "verifier_params_file"}
    of_contract = {"command_interface"}
    assert names("all") == (names("draft") | names("verifier") | names("simulation") | ours) - of_contract


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("log_levle", "log_levle: no argument of this launch file, ignored; did you mean log_level?"),
        ("zzz", "zzz: no argument of this launch file, ignored; there are "),
        ("log_level", ""),
        ("peers", ""),
    ],
)
def test_an_argument_that_no_one_takes_is_reported_with_the_nearest(
    job: str, argument: str, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    from launch import LaunchContext

    context = LaunchContext(argv=[f"{argument}:=ball"])
    context.launch_configurations[argument] = "ball"
    (check, *rest) = description_of(job).entities
    check.visit(context)
    printed = caplog.text
    assert says in printed
    assert ("no argument of" in printed) == bool(says)
    assert not any(isinstance(each, type(check)) for each in rest)


def test_what_may_be_for_a_file_that_includes_this_one_is_not_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from launch import LaunchContext

    context = LaunchContext(argv=["taks:=ball"])
    context.launch_configurations.update({"taks": "ball", "of_the_other_file": ""})
    description_of("draft").entities[0].visit(context)
    assert "no argument of" not in caplog.text


@pytest.mark.parametrize(
    ("job", "former", "name"),
    [
        *[(job, "respawn", "use_respawn") for job in ("draft", "verifier", "robot", "all")],
        ("verifier", "verifier_params_file", "params_file"),
    ],
)
def test_a_former_name_of_an_argument_is_refused_with_the_new_one(job: str, former: str, name: str) -> None:
    from launch import LaunchContext

    context = LaunchContext(argv=[f"{former}:=true"])
    context.launch_configurations[former] = "true"
    check = description_of(job).entities[0]
    with pytest.raises(ValueError, match=rf"^{former}: gone since 0\.4\.0; its name is {name}$"):
        check.visit(context)
    context.launch_configurations[name] = ""  # a file that includes this one may have such an argument
    check.visit(context)


@pytest.mark.parametrize(("job", "executable"), [each for each in FIRST.items() if each[0] != "all"])
def test_one_job_per_file(job: str, executable: str) -> None:
    assert node_of(job, **FILES).node_executable == executable


def node_of(job: str, **arguments: str) -> Any:
    """Return a file's node as it is started with launch arguments."""
    return node_in(description_of(job), **arguments)


def node_in(description: Any, **arguments: str) -> Any:
    """Return a description's node as it is started with launch arguments."""
    (node,) = all_nodes_in(description, **arguments)
    return node


def all_nodes_in(description: Any, **arguments: str) -> list[Any]:
    """Return a description's nodes as they are started with launch arguments."""
    from launch import LaunchContext

    context = LaunchContext()
    context.launch_configurations.update(arguments)
    nodes = []
    for node in nodes_of(description, context):
        node._perform_substitutions(context)  # here, while the remappings of its group hold
        if node.node_package in OURS:  # not robot_state_publisher, which may be installed
            nodes.append(node)
    return nodes


def parameters_of(node: Any) -> dict[str, Any]:
    given = node._Node__expanded_parameter_arguments
    parameters: dict[str, Any] = {}
    for file, is_file in given:
        assert is_file
        # In full: launch writes lists as tuples of Python, which ROS reads as lists.
        for section in yaml.full_load(Path(file).read_text()).values():
            parameters |= section.get("ros__parameters", {})
    return parameters


@pytest.mark.parametrize(("job", "name"), [("draft", "robot_id"), ("simulation", "task")])
@pytest.mark.parametrize("value", ["7", "1.5", "true", "arm"])
def test_strings_stay_strings(job: str, name: str, value: str) -> None:
    node = node_of(job, **FILES, **{name: value})
    assert parameters_of(node)[name] == value


@pytest.mark.parametrize("job", sorted({*JOBS} - {"all"}))
def test_sim_time(job: str) -> None:
    assert parameters_of(node_of(job, **FILES))["use_sim_time"] is False
    assert parameters_of(node_of(job, **FILES, use_sim_time="true"))["use_sim_time"] is True


def text_of(word: Any) -> str:
    """Return a word of a command that is text as it stands."""
    return "".join(getattr(each, "text", "") for each in word)


@pytest.mark.parametrize("job", sorted({*JOBS} - {"all"}))
@pytest.mark.parametrize("enclave", ["/", "/adahi/r1"])
def test_every_node_is_in_the_enclave(job: str, enclave: str) -> None:
    from launch import LaunchContext

    context = LaunchContext()
    given = {**FILES, "run_policy": "true"} | ({} if enclave == "/" else {"enclave": enclave})
    context.launch_configurations.update(given)
    found = []
    for node in nodes_of(description_of(job), context):
        if node.node_package in OURS:
            (at,) = (index for index, word in enumerate(node.cmd) if text_of(word) == "--enclave")
            found.append(context.perform_substitution(node.cmd[at + 1][0]))
    assert found == [enclave] * (2 if job in ("draft", "robot") else 1)


@pytest.mark.parametrize("job", ["draft", "robot"])
def test_a_draft_is_configured_and_activated_without_autostart_false(job: str) -> None:
    assert parameters_of(node_of(job, **FILES))["autostart"] is True
    assert parameters_of(node_of(job, **FILES, autostart="false"))["autostart"] is False


@pytest.mark.parametrize("job", ["draft", "robot"])
def test_a_policy_that_is_to_be_run_by_goals_has_its_runner_beside_it(job: str, tmp_path: Path) -> None:
    runner_file = tmp_path / "runner.yaml"
    runner_file.write_text("/**: {ros__parameters: {no_verifier_s: 0.0}}")
    given = {**FILES, "namespace": "/arm", "runner_params_file": str(runner_file), "use_sim_time": "true"}
    draft, runner = all_nodes_in(description_of(job), **given, run_policy="true")
    assert (draft.node_executable, runner.node_executable) == ("draft_policy_node", "policy_runner_node")
    assert parameters_of(draft)["autostart"] is False
    assert parameters_of(runner) == {"no_verifier_s": 0.0, "use_sim_time": True}
    assert runner.expanded_node_namespace == draft.expanded_node_namespace == "/arm"
    _, runner = all_nodes_in(description_of(job), **FILES, run_policy="true")
    assert parameters_of(runner) == {"use_sim_time": False}


@pytest.mark.parametrize("job", ["verifier", "all"])
def test_a_target_is_a_file_that_is_here_or_a_checkpoint_of_the_package(
    job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checkpoint(target: str = "") -> str:
        given = {"target": target} if target else {}
        nodes = all_nodes_in(description_of(job), **files, **given)
        (verifier,) = (each for each in nodes if each.node_executable == NODES["verifier"])
        named: str = parameters_of(verifier)["checkpoint"]
        return named

    (tmp_path / "params.yaml").write_text("/**: {ros__parameters: {checkpoint: swarm/target}}")
    of_verifier = "params_file" if job == "verifier" else "verifier_params_file"
    files = {**FILES, of_verifier: str(tmp_path / "params.yaml")}
    assert checkpoint() == "swarm/target"
    (tmp_path / "arm.yaml").write_text("kind: openpi")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/target.json").touch()
    monkeypatch.chdir(tmp_path)
    assert checkpoint("arm.yaml") == str(tmp_path / "arm.yaml")
    assert checkpoint("arm") == str(tmp_path / "arm")
    assert checkpoint("policies/target") == str(tmp_path / "policies/target")
    assert checkpoint("policies") == str(tmp_path / "policies")  # LeRobot's are folders
    assert checkpoint("kitchen/target") == "kitchen/target"


def test_a_target_whose_file_is_not_there_is_named_before_anything_starts(tmp_path: Path) -> None:
    for file in (tmp_path / "typo.yaml", Path("typo.yml")):
        with pytest.raises(ValueError, match=rf"^target: there is no file {file.absolute()}$"):
            node_of("verifier", **FILES, target=str(file))


def test_a_verifier_beside_a_policy_that_is_run_by_goals_starts_itself() -> None:
    verifier, draft, _, _ = all_nodes_in(description_of("all"), **FILES, run_policy="true")
    assert (parameters_of(verifier)["autostart"], parameters_of(draft)["autostart"]) == (True, False)


@pytest.mark.parametrize("job", ["draft", "verifier"])
@pytest.mark.parametrize(
    ("namespace", "prefix"), [("", ""), ("/", "/"), ("/server", "/server/"), ("server", "server/")]
)
def test_robots_in_namespaces_can_share_a_verifier(job: str, namespace: str, prefix: str) -> None:
    node = node_of(job, **FILES, namespace="r1", verifier_namespace=namespace)
    names = ("describe_target", "verify_draft", "assignments")
    assert node.expanded_remapping_rules == [(name, f"{prefix}{name}") for name in names]


@pytest.mark.parametrize("job", ["draft", "robot"])
def test_a_robot_may_be_given_further_verifiers(job: str) -> None:
    assert "verification.backups" not in parameters_of(node_of(job, **FILES))
    given = {"backup_verifiers": "/server_2; /server_3", "hedge": "at_once"}
    parameters = parameters_of(node_of(job, **FILES, **given))
    assert list(parameters["verification.backups"]) == ["/server_2", "/server_3"]
    assert parameters["verification.hedge"] == "at_once"


OF_THE_ROBOT = {
    "contract": "ball_camera",
    "verification.hedge": "late",
    "safety.limits": "franka_panda",
    "verification.vision": "jpeg",
}


@pytest.fixture
def empty(tmp_path: Path) -> str:
    """A parameter file that sets nothing but the seed."""
    file = tmp_path / "empty.yaml"
    file.write_text("/**: {ros__parameters: {seed: 1}}")
    return str(file)


@pytest.mark.parametrize("job", ["draft", "robot"])
def test_what_is_given_wins_over_the_parameter_file_and_nothing_else_does(job: str, empty: str) -> None:
    left = parameters_of(node_of(job, params_file=empty))
    assert not left.keys() & set(OF_THE_ROBOT)
    given = {name.split(".")[-1]: value for name, value in OF_THE_ROBOT.items()}
    given["safety_limits"] = given.pop("limits")
    parameters = parameters_of(node_of(job, params_file=empty, **given))
    assert parameters.items() >= OF_THE_ROBOT.items()


@pytest.mark.parametrize(
    ("file", "arm", "namespace"),
    [("franka_panda.launch.xml", "franka_panda", "/"), ("so101.launch.yaml", "so101", "/follower")],
)
def test_an_example_starts_a_node_with_the_contract_and_limits_of_its_arm(
    file: str, arm: str, namespace: str
) -> None:
    from launch import LaunchContext
    from launch.launch_description_sources import AnyLaunchDescriptionSource

    source = AnyLaunchDescriptionSource(str(asset(f"launch/examples/{file}")))
    node = node_in(source.get_launch_description(LaunchContext()), params_file=FILES["params_file"])
    parameters = parameters_of(node)
    given = {"contract": arm, "safety.limits": arm, "safety.require_enable": True}
    assert parameters.items() >= given.items()
    assert node.expanded_node_namespace == namespace


@pytest.mark.parametrize(
    ("job", "given", "required"), [("draft", "", None), ("robot", "", True), ("robot", "false", False)]
)
def test_a_robot_moves_only_where_somebody_allows_it(job: str, given: str, required: bool | None) -> None:
    arguments = {"require_enable": given} if given else {}
    assert parameters_of(node_of(job, **FILES, **arguments)).get("safety.require_enable") is required


@pytest.mark.parametrize(("given", "required"), [({}, False), ({"require_enable": "true"}, True)])
def test_the_robot_that_is_simulated_beside_its_policy_needs_no_deadman(
    given: dict[str, str], required: bool
) -> None:
    nodes = all_nodes_in(description_of("all"), **FILES, **given)
    (draft,) = (each for each in nodes if each.node_executable == NODES["draft"])
    assert parameters_of(draft)["safety.require_enable"] is required


@pytest.mark.parametrize("job", ["draft", "robot"])
def test_what_a_robot_does_without_its_target_is_left_to_its_file(job: str, empty: str) -> None:
    left = parameters_of(node_of(job, params_file=empty))
    assert not left.keys() & {"fallback", "fallback_limit", "safety.require_limits"}
    given = parameters_of(node_of(job, params_file=empty, fallback="draft", fallback_limit="2"))
    assert given.items() >= {"fallback": "draft", "fallback_limit": 2}.items()


def test_a_deadman_is_required_even_against_the_parameter_file(tmp_path: Path) -> None:
    file = tmp_path / "arm.yaml"
    file.write_text("/**: {ros__parameters: {safety.require_enable: false}}")
    assert parameters_of(node_of("robot", params_file=str(file)))["safety.require_enable"] is True


def test_a_robot_is_reached_by_its_own_topic_names() -> None:
    topics = {"joint_states": "/joint_states", "command": "/arm/commands", "camera": "/wrist/image_raw"}
    remapped = dict(node_of("robot", **FILES, **topics, enable="/deadman").expanded_remapping_rules)
    expected = {
        "joint_states": "/joint_states",
        "command": "/arm/commands",
        "camera/image_raw": "/wrist/image_raw",
        "enable": "/deadman",
    }
    assert remapped.items() >= expected.items()


@pytest.mark.parametrize(
    ("interface", "topic"),
    [
        ("joint_trajectory", "joint_trajectory_controller/joint_trajectory"),
        ("forward_command", "forward_velocity_controller/commands"),
        ("joint_jog", "servo_node/delta_joint_cmds"),
    ],
)
def test_the_simulated_panda_takes_commands_where_a_real_one_would(interface: str, topic: str) -> None:
    node = node_of("panda", command_interface=interface)
    assert dict(node.expanded_remapping_rules)["command"] == topic
    assert parameters_of(node)["command_interface"] == interface
    assert parameters_of(node)["task"] == "kitchen"
    other = node_of("panda", command_interface=interface, command="/mine")
    assert dict(other.expanded_remapping_rules)["command"] == "/mine"


FOUND = sorted({path.name.removesuffix(".launch.py") for path in asset_files("launch", "*.launch.py")})


@pytest.mark.parametrize("job", FOUND)
def test_no_argument_is_run_as_python(job: str, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    for argument in description_of(job).get_launch_arguments():
        for quote in ("'", '"'):
            code = f"{quote}+open({str(ran)!r}, 'w').name+{quote}"
            with suppress(Exception):
                all_nodes_in(description_of(job), **{**FILES, argument.name: code})
            assert not ran.exists(), argument.name


NAMING = [
    *[(job, name) for job in ("draft", "all") for name in ("params_file", "runner_params_file")],
    *[("verifier", "params_file"), ("all", "verifier_params_file")],
    *[(job, "target") for job in ("verifier", "all")],
    *[("all", name) for name in ("task", "method")],
    *[("description", "urdf"), ("dds", "dds")],
]


@pytest.mark.parametrize(("job", "argument"), NAMING)
@pytest.mark.parametrize("name", ["x" * 5000 + ".yaml", "y" * 300 + ".yaml", "a\0b.yaml", "~nobody/x.yaml"])
def test_a_name_that_no_file_can_have_is_refused_by_its_argument(job: str, argument: str, name: str) -> None:
    for method in ("adahi", "plan_8"):
        files = {} if argument in ("task", "method") else FILES  # a file that is given wins
        with pytest.raises(ValueError, match=rf"^{argument}s?: ") as caught:
            all_nodes_in(description_of(job), **{"method": method, **files, argument: name})
        assert "Errno" not in str(caught.value)
        assert len(str(caught.value)) < 2500


@pytest.mark.parametrize(
    ("job", "argument", "allowed"),
    [
        ("all", "lockstep", ("true", "false")),
        ("simulation", "lockstep", ("true", "false")),
        ("simulation", "command_interface", ("joint_trajectory", "forward_command", "twist", "joint_jog")),
        ("panda", "command_interface", ("joint_trajectory", "forward_command", "joint_jog")),
    ],
)
@pytest.mark.parametrize("value", ["it's", "yes"])
def test_a_word_that_an_argument_does_not_know_is_refused_by_name(
    job: str, argument: str, allowed: tuple[str, ...], value: str
) -> None:
    with pytest.raises((ValueError, RuntimeError)) as caught:
        all_nodes_in(description_of(job), **FILES, **{argument: value})
    assert all(word in str(caught.value) for word in (argument, value, *allowed))


def test_what_depends_on_lockstep_is_given_by_its_word() -> None:
    for value, hold_after_s, lockstep in (("true", 60.0, True), ("True", 60.0, True), ("false", None, None)):
        nodes = all_nodes_in(description_of("all"), **FILES, lockstep=value)
        (draft,) = (each for each in nodes if each.node_executable == NODES["draft"])
        given = parameters_of(draft)
        assert given.get("safety.hold_after_s") == hold_after_s
        assert given.get("command.lockstep") is lockstep


def test_the_simulator_takes_joint_trajectories_by_default() -> None:
    assert parameters_of(node_of("simulation"))["command_interface"] == "joint_trajectory"
    assert parameters_of(node_of("simulation", command_interface="twist"))["command_interface"] == "twist"


@pytest.mark.parametrize("method", ["adahi", "best", "plan_8"])
def test_a_method_brings_the_parameter_files_that_are_not_given(method: str) -> None:
    verifier, draft, _ = all_nodes_in(description_of("all"), method=method, task="swarm")
    robot_file, verifier_file = parameter_files(method, "swarm")

    def values(file: Path) -> dict[str, Any]:
        sections = yaml.safe_load(file.read_text()).values()
        return {name: value for each in sections for name, value in each["ros__parameters"].items()}

    assert parameters_of(draft).items() >= values(robot_file).items()
    assert parameters_of(verifier).items() >= values(verifier_file).items()
    _, draft, _ = all_nodes_in(description_of("all"), method=method, task="swarm", **FILES)
    assert parameters_of(draft).items() >= values(Path(FILES["params_file"])).items()


def test_a_verifier_beside_a_simulation_has_the_tasks_target_and_encoder(tmp_path: Path) -> None:
    file = tmp_path / "verifier.yaml"
    file.write_text(
        "/**: {ros__parameters: {rule.name: replace}}\ntarget_verifier: {ros__parameters: {seed: 3}}"
    )
    files = {**FILES, "verifier_params_file": str(file)}
    verifier, _, _ = all_nodes_in(description_of("all"), task="ball_seen", **files)
    given = {
        "checkpoint": "ball_seen/target",
        "encoder": "ball_instructed",
        "rule.name": "replace",
        "seed": 3,
    }
    assert parameters_of(verifier).items() >= given.items()
    file.write_text("/**: {ros__parameters: {checkpoint: swarm/target}}")
    verifier, _, _ = all_nodes_in(description_of("all"), task="ball_seen", **files)
    assert parameters_of(verifier)["checkpoint"] == "swarm/target"


def test_the_launch_file_that_moved_refuses_with_the_new_command() -> None:
    from launch import LaunchContext
    from launch.launch_description_sources import get_launch_description_from_python_launch_file

    (refusal,) = get_launch_description_from_python_launch_file(str(asset("launch/all.launch.py"))).entities
    with pytest.raises(RuntimeError, match=r"use: ros2 launch adahi_lab all.launch.py task:=ball$"):
        refusal.execute(LaunchContext(argv=["task:=ball"]))
