"""Asks a door as openpi's own client does; prints what it got as JSON. Runs where openpi-client is installed.

python openpi_client_program.py HOST PORT
"""

from __future__ import annotations

import json
import sys

import numpy as np
from openpi_client.action_chunk_broker import ActionChunkBroker
from openpi_client.websocket_client_policy import WebsocketClientPolicy

SEEN = {
    "observation/joint_position": np.array([0.1, 0.2]),
    "observation/gripper_position": np.float32(0.5),
    "observation/image": np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3),
    "prompt": "stack the cups",
}


def main() -> None:
    policy = WebsocketClientPolicy(sys.argv[1], int(sys.argv[2]), api_key="0123456789abcdef")
    got = {"metadata": policy.get_server_metadata(), "plan": policy.infer(SEEN)["actions"].tolist()}
    try:
        policy.infer({**SEEN, "observation/joint_position": np.zeros(3)})
    except RuntimeError as error:
        got["error"] = str(error)
    broker = ActionChunkBroker(policy, action_horizon=2)
    got["actions"] = [broker.infer(SEEN)["actions"].tolist() for _ in range(3)]
    print(json.dumps(got))


if __name__ == "__main__":
    main()
