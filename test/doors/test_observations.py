"""Whatever a client sends as an observation becomes a request, or is refused in a sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from adahi_ros.core.signature import Feature, ImageInput, Signature
from adahi_ros.doors.observations import ClientFile, ObservationReader
from adahi_ros.protocol.request import Request, RequestError
from adahi_ros.server.window_cache import WindowCache

SIGNATURE = Signature(
    2,
    4,
    2,
    (Feature("state", 2), Feature("gripper", 1)),
    (Feature("goal", 1),),
    images=(ImageInput("front", 3, 4),),
    instruction=True,
)
THEIRS = ClientFile(keys={"state": ("a", "b/c"), "front": ("img",), "instruction": ("task",)})
READERS = [
    ObservationReader(signature, file)
    for signature in (SIGNATURE, replace(SIGNATURE, history=1))
    for file in (
        ClientFile(),
        THEIRS,
    )
]
HEADER = Request(0, 1, 1, robot_id="openpi/0")
SHAPES = st.sampled_from([(), (1,), (2,), (2, 1), (2, 2), (1, 2), (3, 4, 3), (3, 3, 4), (2, 3, 4, 3), (0,)])
ARRAYS = st.sampled_from(["<f4", "<f8", ">f8", "u1", "<i8", "?", "<f2"]).flatmap(
    lambda kind: arrays.arrays(np.dtype(kind), SHAPES)
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=600)
    | st.binary(max_size=9)
    | ARRAYS
)
VALUES = st.recursive(LEAVES, lambda inside: st.lists(inside, max_size=4), max_leaves=9)
NAMES = (
    st.sampled_from(["state", "gripper", "goal", "front", "prompt", "a", "b/c", "img", "task"]) | st.text()
)
SEEN = st.recursive(
    st.dictionaries(NAMES, VALUES, max_size=9),
    lambda inside: st.dictionaries(NAMES, VALUES | inside, max_size=9),
    max_leaves=4,
)


def taken(reader: ObservationReader, observation: Any) -> str:
    """Read an observation as far as the target; return how it is refused, if it is."""
    signature = reader._signature
    try:
        request = reader.request(observation, HEADER)
    except RequestError as error:
        return str(error)
    cache = WindowCache(signature.history, signature.observation_dim, pictures=len(signature.images))
    known = cache.complete(request.robot_id, request.window)
    assert known.values.shape == (signature.history, signature.observation_dim)
    assert np.isfinite(known.values).all()
    assert known.goal.shape == (signature.goal_dim,)
    assert len(known.images) == signature.history * len(signature.images)
    assert 0 < len(request.instruction) <= 512
    return ""


@given(st.sampled_from(READERS), SEEN | VALUES)
def test_any_plain_data_is_read_or_refused(reader: ObservationReader, observation: Any) -> None:
    fault = taken(reader, observation)
    assert len(fault) <= 512
    assert fault.isprintable()


@given(
    st.sampled_from(READERS[::2]),
    st.data(),
    st.sampled_from(["<f4", "<f8", ">f8", "<i4"]),
)
def test_what_the_metadata_says_is_read(reader: ObservationReader, data: st.DataObject, kind: str) -> None:
    seen: dict[str, Any] = {}
    for name, each in reader.metadata()["observation"].items():
        if name == "instruction":
            seen[each["keys"][0]] = "go"
        else:
            numbers = st.integers(0, 200)
            dtype = np.uint8 if each["dtype"] == "uint8" else np.dtype(kind)
            shape = tuple(each["shape"])
            seen[each["keys"][0]] = data.draw(arrays.arrays(np.int64, shape, elements=numbers)).astype(dtype)
    assert taken(reader, seen) == ""
