"""A bag of a simulated robot that follows its target's plans blindly, for 'adahi corrector from-bag'.

    .venv/bin/python benchmarks/record_plans.py --out BAG [--task ball] [--episodes 60] [--rate 0.12]

Every step asks for a new plan at the rate, and where a plan is over. Runs in process; the messages are those
that the simulator's node publishes, stamped as they would be, and the bag is what the recorder would write.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rclpy.serialization import serialize_message

from adahi_ros.assets import asset
from adahi_ros.bags.topics import EPISODE_RESULT, absolute, topics_of
from adahi_ros.bags.writer import BagWriter
from adahi_ros.contract.parsing import load_contract
from adahi_ros.contract.times import NANOSECONDS
from adahi_ros.gates.config import ControllerConfig
from adahi_ros.gates.scores import Trigger
from adahi_ros.nodes.common.command_interfaces import INTERFACE_OF_KIND, command_interface
from adahi_ros.nodes.common.messages import to_episode_result, to_joint_state, to_task_state
from adahi_ros.policy.backends import load_policy
from adahi_ros.policy.history import History
from adahi_ros.policy.signature import GOAL, OBSERVATION
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier, VerificationDraws
from adahi_ros.tasks import make
from adahi_ros.wire.records import EpisodeRecord
from adahi_ros.wire.request import VerificationRequest

EPISODES = 5_000_000  # numbers that neither demonstrations nor evaluations have
START_NS = 1_000_000_000_000


def main(
    out: Annotated[Path, typer.Option(help="The bag to make: a folder that is not there yet.")],
    task: Annotated[str, typer.Option(help="One without a camera whose target plans.")] = "ball",
    episodes: Annotated[int, typer.Option(min=1, help="How many.")] = 60,
    rate: Annotated[float, typer.Option(min=0.0, max=1.0, help="Of new plans.")] = 0.12,
    seed: Annotated[int, typer.Option(min=0, help="Of every draw.")] = 0,
) -> None:
    """Record blind plans."""
    target = load_policy(asset(f"checkpoints/{task}/plans") / "target", "onnxruntime")
    contract = load_contract(task)
    writer = BagWriter(out)
    for topic, kind in {**topics_of(contract), **EPISODE_RESULT}.items():
        writer.add(absolute(topic), kind)
    command_out = contract.action.channel
    world = make(task)
    spec = world.spec
    interface = command_interface(INTERFACE_OF_KIND[command_out.kind], spec.commanded, spec.command_field)
    controller = Controller(target, ControllerConfig(Trigger("random", 1.0 - rate)), "plan")
    verifier = TargetVerifier(target, "replace")
    period_s, now, succeeded = 1.0 / spec.control_rate_hz, START_NS, 0

    def write(topic: str, message: Any, at_ns: int) -> None:
        writer.write(absolute(topic), serialize_message(message), at_ns)

    for number in range(EPISODES, EPISODES + episodes):
        world.reset(seed, [number])
        controller.reset(seed, [number])
        seen, draws = History(target.signature, 1), VerificationDraws(seed, "robot", [number], target.draws)
        steps = 0
        while not world.done[0]:
            now += round(NANOSECONDS * period_s)
            joints = world.joint_positions[0], world.joint_velocities[0]
            write("joint_states", to_joint_state(spec.joint_names, *joints, now), now)
            state = world.state[0], world.goal[0], number, steps
            write("task_state", to_task_state(*state, now, spec.frame_id), now)
            observed = {OBSERVATION: world.observation, GOAL: world.goal}
            step, observations, uniforms = controller.begin(observed), seen.push(observed), draws.next()
            verdict = None
            if step.transmit[0]:
                request = VerificationRequest(observations, step.draft(np.array([0])))
                verdict = verifier.verify_each(request, uniforms)
            action = controller.finish(step, verdict)
            controller.executed(action)
            command = interface.message(spec.commanded, spec.command_field, action[0], period_s, now)
            write(command_out.topic, command, now)
            world.step(action)
            steps += 1
        success = bool(world.success[0])
        succeeded += success
        write("episode_result", to_episode_result(EpisodeRecord(number, steps, success), now), now)
    writer.close()
    print(f"{out}: {sum(writer.counts.values())} messages, {succeeded} of {episodes} episodes succeeded")


if __name__ == "__main__":
    typer.run(main)
