"""Forward kinematics, against MuJoCo's of the same URDF."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_lab.tasks.ball import GRAVITY, ROLLING_SHARE, BallBalancing, BallParameters
from adahi_ros.core.assets import asset
from adahi_ros.core.kinematics import Chain

MASS = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
KINDS = ("revolute", "continuous", "prismatic", "fixed")


def urdf_of(joints: list[str], links: int) -> str:
    bodies = "".join(f'<link name="link{index}">{MASS}</link>' for index in range(links))
    compiler = '<mujoco><compiler fusestatic="false"/></mujoco>'
    return f'<robot name="arm">{compiler}{bodies}{"".join(joints)}</robot>'


def joint(index: int, kind: str, numbers: np.ndarray, extra: str = "") -> str:
    xyz, rpy, axis = (" ".join(map(repr, map(float, part))) for part in numbers.reshape(3, 3))
    return (
        f'<joint name="joint{index}" type="{kind}">'
        f'<parent link="link{index}"/><child link="link{index + 1}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
        f'<limit lower="-9" upper="9" effort="1" velocity="1"/>{extra}</joint>'
    )


@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_the_tip_is_where_mujoco_puts_it(kinds: list[str], seed: int) -> None:
    draw = np.random.default_rng(seed)
    joints = [joint(index, kind, draw.uniform(-2.0, 2.0, 9)) for index, kind in enumerate(kinds)]
    urdf = urdf_of(joints, len(kinds) + 1)
    model = mujoco.MjModel.from_xml_string(urdf)
    data = mujoco.MjData(model)
    data.qpos[:] = draw.uniform(-3.0, 3.0, model.nq)
    mujoco.mj_kinematics(model, data)
    tip = data.body(f"link{len(kinds)}")
    chain = Chain(urdf, "link0", f"link{len(kinds)}")
    names = [model.joint(index).name for index in range(model.njnt)]
    assert list(chain.joint_names) == names
    pose = chain.pose(dict(zip(names, data.qpos, strict=True)))
    np.testing.assert_allclose(pose[:3, 3], tip.xpos, atol=1e-9)
    np.testing.assert_allclose(pose[:3, :3], tip.xmat.reshape(3, 3), atol=1e-9)


def test_a_mimicking_joint_follows_the_other() -> None:
    slide = np.array([0, 0, 0, 0, 0, 0, 1, 0, 0])
    mimic = '<mimic joint="joint0" multiplier="-2" offset="0.5"/>'
    urdf = urdf_of([joint(0, "prismatic", slide), joint(1, "prismatic", slide, mimic)], 3)
    chain = Chain(urdf, "link0", "link2")
    assert chain.joint_names == ("joint0",)
    np.testing.assert_allclose(chain.pose({"joint0": 0.2})[:3, 3], [0.2 - 2 * 0.2 + 0.5, 0, 0])


def test_the_ball_rolls_where_its_robot_description_says_is_down() -> None:
    endless = BallParameters(
        half_side_m=1e3, disturbance_m_s2=0.0, rolling_damping_per_s=0.0, max_steps=1000, post_radius_m=1e-6
    )
    task = BallBalancing(endless)
    task.reset(0, [0])
    before = task.state[0, 2:]
    for _ in range(200):  # until the plate is where it was told to be
        before = task.state[0, 2:]
        task.step(np.array([[0.15, -0.1]]))
    plate = Chain(asset("config/urdf/ball.urdf").read_text(), "base_link", "plate")
    joints = dict(zip(task.spec.joint_names, task.joint_positions[0], strict=True))
    down = plate.pose(joints)[:3, :3].T @ [0.0, 0.0, -1.0]
    gained = ROLLING_SHARE * GRAVITY * down[:2] / endless.control_rate_hz
    np.testing.assert_allclose(task.state[0, 2:] - before, gained, rtol=1e-6)


GOOD = urdf_of([joint(0, "revolute", np.ones(9))], 3)


@pytest.mark.parametrize(
    ("urdf", "base", "tip", "words"),
    [
        ("<robot", "link0", "link1", "robot_description: no XML"),
        (GOOD, "world", "link1", "base_link: 'world', must be a link of the robot: link0, link1, link2"),
        (GOOD, "link0", "tool", "tip_link: 'tool', must be a link of the robot: link0, link1, link2"),
        (GOOD, "link0", "link2", "tip_link: 'link2', must hang on 'link0'; it hangs on 'link2'"),
        (
            GOOD.replace('"revolute"', '"floating"'),
            "link0",
            "link1",
            "joint joint0 is floating, must be one of",
        ),
        (
            GOOD.replace('axis xyz="1.0 1.0 1.0"', 'axis xyz="0 0 0"'),
            "link0",
            "link1",
            "axis of joint joint0",
        ),
        (GOOD.replace('rpy="1.0 1.0 1.0"', 'rpy="1.0 1.0"'), "link0", "link1", "'1.0 1.0', must be three"),
        (GOOD.replace('rpy="1.0 1.0 1.0"', 'rpy="1 nan 1"'), "link0", "link1", "'1 nan 1', must be three"),
        (
            GOOD.replace(
                '<parent link="link0"/>', '<parent link="link0"/><mimic joint="a" offset="inf"/>', 1
            ),
            "link0",
            "link1",
            "mimic offset of joint joint0 is 'inf', must be a number",
        ),
        (GOOD.replace('<parent link="link0"/>', ""), "link0", "link1", "joint joint0 has no parent link"),
    ],
)
def test_what_is_wrong_with_a_description_is_named(urdf: str, base: str, tip: str, words: str) -> None:
    with pytest.raises(ValueError, match=r"robot_description|base_link|tip_link") as error:
        Chain(urdf, base, tip)
    assert words in str(error.value)


def test_a_ring_of_links_is_no_chain() -> None:
    ring = GOOD.replace("</robot>", "") + (
        '<joint name="back" type="fixed"><parent link="link1"/><child link="link0"/></joint></robot>'
    )
    with pytest.raises(ValueError, match="tip_link: 'link1', must hang on 'link2'"):
        Chain(ring, "link2", "link1")
