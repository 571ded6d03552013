"""Hidden states arrive as they were sent, also where a message would be shorter without its zeros."""

from __future__ import annotations

import numpy as np
from adahi_msgs.srv import VerifyDraft
from rclpy.serialization import deserialize_message, serialize_message

from adahi_ros.core.proposal import States
from adahi_ros.nodes.common.verifier_messages import to_request
from adahi_ros.nodes.server.robot_messages import from_request
from adahi_ros.protocol.distributions import DENSE_MOST
from adahi_ros.protocol.request import Request, Sender
from adahi_ros.protocol.states import from_numbers, to_numbers
from adahi_ros.protocol.window import WireWindow

CODES, SIZE = 32, 96


def test_hidden_states_are_never_sent_as_pairs_of_index_and_count() -> None:
    values, every = np.zeros((1, CODES, SIZE), np.int8), np.ones((1, CODES), bool)
    values[0, 3, 5] = -7
    states = States(values, every, np.array([0.25]))
    window = WireWindow.of(np.zeros((1, 3), np.float32), np.zeros(0, np.float32))
    request = Request(0, 1, 1, window, codes=np.arange(CODES), counts=to_numbers(states), states=states)
    assert request.counts.size > DENSE_MOST
    sender = Sender.of_new_start("robot", "", "0" * 15 + "1")
    message = serialize_message(to_request(request, window, sender))
    received = from_request(deserialize_message(message, VerifyDraft.Request))
    assert received.fault is None
    np.testing.assert_array_equal(from_numbers(received.counts, CODES, SIZE).values, values)
