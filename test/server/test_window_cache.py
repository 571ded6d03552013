"""Whatever is lost, repeated or restarted, the verifier sees the robot's window or says that it cannot."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.protocol.request import RequestError, RequestFault
from adahi_ros.protocol.window import WHOLE, SentWindows, WireRows, WireWindow
from adahi_ros.server.window_cache import WINDOWS_KEPT, KnownWindow, WindowCache

H, S, F, G = 4, 3, 4, 2
CAMERAS = 2
GOAL = np.zeros(G, np.float32)
MODES = ("state", "features", "images", "nothing")
FATES = ("replied", "lost", "late", "restart")


class ByteEncoder:
    """Features of an "image" of four bytes: half of each of the first two. Counts what it encodes."""

    features = F // CAMERAS

    def __init__(self) -> None:
        self.encoded: list[bytes] = []

    def encode(self, jpeg: bytes) -> np.ndarray:
        if len(jpeg) != 4:
            raise ValueError(f"data: {len(jpeg)} bytes, must be 4")
        self.encoded.append(jpeg)
        return np.array([jpeg[0], jpeg[1]], np.float32) / 2


class Camera:
    """Windows of consecutive steps, each the one before moved on by a row: as meant, and as sent."""

    def __init__(self, mode: str, steps: int, seed: int = 0, numbers: int = S) -> None:
        draw = np.random.default_rng(seed)
        self.mode = mode
        self.dim = numbers + (0 if mode == "state" else F)
        self.encoder = ByteEncoder()
        self._numbers = draw.normal(size=(H + steps, numbers)).astype(np.float32)
        self._features = draw.normal(size=(H + steps, F)).astype(np.float16).astype(np.float32)
        self._images = [draw.bytes(4) for _ in range(CAMERAS * (H + steps))]

    def cache(self, robots: int = 10, max_age_s: float = 60.0) -> WindowCache:
        return WindowCache(H, self.dim, self.encoder, robots, max_age_s)

    def sent(self, step: int, goal: np.ndarray = GOAL) -> WireWindow:
        """The window of a step as the robot sends it."""
        rows = slice(step, step + H)
        numbers = self._numbers[rows]
        if self.mode == "features":
            return WireWindow.pack(numbers, goal, features=self._features[rows])
        if self.mode == "images":
            images = self._images[CAMERAS * step : CAMERAS * (step + H)]
            return WireWindow.pack(numbers, goal, images=images)
        return WireWindow.pack(numbers, goal)

    def meant(self, step: int) -> np.ndarray:
        """The window (H, O) of a step as the target is to see it."""
        rows = slice(step, step + H)
        if self.mode == "state":
            return self._numbers[rows]
        features = np.zeros((H, F), np.float32)
        if self.mode == "features":
            features = self._features[rows]
        if self.mode == "images":
            images = self._images[CAMERAS * step : CAMERAS * (step + H)]
            features = np.stack([ByteEncoder().encode(image) for image in images]).reshape(H, F)
        return np.concatenate([self._numbers[rows], features], axis=1)


def bits(values: np.ndarray) -> bytes:
    assert values.dtype == np.float32
    return values.tobytes()


@given(
    st.sampled_from(MODES),
    st.integers(0, 2**32 - 1),
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from(FATES)), max_size=20),
)
def test_what_arrives_is_the_window_or_a_plain_no(mode: str, seed: int, fates: list[tuple[int, str]]) -> None:
    robot = Camera(mode, 200, seed)
    sent, cache = SentWindows(), robot.cache()
    goals = np.random.default_rng(seed).normal(size=(200, G)).astype(np.float32)
    step = 0
    for skipped, fate in fates:
        step += skipped
        goal = goals[step // 7]
        window = robot.sent(step, goal)
        update = sent.update(window)
        if fate == "lost":
            continue
        if fate == "restart":
            cache = robot.cache()
        try:
            got = cache.complete("robot", update)
        except RequestError as error:
            assert error.fault is RequestFault.WINDOW_UNKNOWN  # noqa: PT017
            sent.forget()
            got = cache.complete("robot", sent.update(window))
        assert bits(got.values) == bits(robot.meant(step))
        assert bits(got.goal) == bits(goal)
        cache.keep("robot", got, 0.0)
        if fate == "replied":
            sent.replied(window, kept=True)


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(MODES[1:])), max_size=20))
def test_a_robot_may_send_other_parts_of_the_next_window(steps: list[tuple[int, str]]) -> None:
    robots = {mode: Camera(mode, 200) for mode in MODES[1:]}
    sent, cache, step = SentWindows(), robots["images"].cache(), 0
    for skipped, mode in steps:
        step += skipped
        window = robots[mode].sent(step)
        got = cache.complete("robot", sent.update(window))
        assert bits(got.values) == bits(robots[mode].meant(step))
        cache.keep("robot", got, 0.0)
        sent.replied(window, kept=True)


def test_an_image_is_encoded_once() -> None:
    sent, robot = SentWindows(), Camera("images", 10)
    cache = robot.cache()

    def replied(update: WireWindow) -> KnownWindow:
        window = cache.complete("robot", update)
        cache.keep("robot", window, 0.0)
        return window

    encoded = robot.encoder.encoded
    replied(sent.update(robot.sent(0)))
    assert len(encoded) == CAMERAS * H
    sent.replied(robot.sent(0), kept=True)
    repeated = sent.update(robot.sent(1))
    assert replied(repeated) is replied(repeated)
    replied(SentWindows().update(robot.sent(2)))  # whole: all but the last observation came before
    assert len(encoded) == CAMERAS * (H + 2)
    first = robot.sent(9).newest(1)
    still = WireRows(first.numbers * H, b"", first.images * H)
    replied(WireWindow(WHOLE, still, GOAL.tobytes()))  # as at the start of an episode
    assert len(encoded) == CAMERAS * (H + 3)


def test_no_robot_has_the_windows_of_another() -> None:
    sent, robot = SentWindows(), Camera("state", 2)
    cache = robot.cache()
    cache.keep("a", cache.complete("a", sent.update(robot.sent(0))), 0.0)
    sent.replied(robot.sent(0), kept=True)
    update = sent.update(robot.sent(1))
    assert bits(cache.complete("a", update).values) == bits(robot.meant(1))
    with pytest.raises(RequestError, match=re.escape("send the whole window")):
        cache.complete("b", update)


def known(cache: WindowCache, name: str, window: KnownWindow) -> bool:
    try:
        cache.complete(name, WireWindow(window.digest, WireRows(b""), b""))
    except RequestError as error:
        assert error.fault is RequestFault.WINDOW_UNKNOWN  # noqa: PT017
        return False
    return True


def test_old_windows_are_forgotten() -> None:
    robot = Camera("state", WINDOWS_KEPT + 1)
    cache = robot.cache()
    windows = [
        cache.complete("a", SentWindows().update(robot.sent(step))) for step in range(WINDOWS_KEPT + 1)
    ]
    for window in windows:
        assert cache.keep("a", window, 0.0)
    assert [known(cache, "a", window) for window in windows] == [False] + [True] * WINDOWS_KEPT


def test_robots_unheard_for_long_are_forgotten_and_others_take_their_place() -> None:
    robot = Camera("state", 1)
    cache = robot.cache(robots=2, max_age_s=10.0)
    window = cache.complete("a", SentWindows().update(robot.sent(0)))
    assert cache.keep("a", window, 0.0)
    assert cache.keep("b", window, 5.0)
    assert cache.keep("a", window, 9.0)
    assert not cache.keep("c", window, 15.0)  # both are young
    assert cache.keep("c", window, 15.1)
    assert [known(cache, name, window) for name in "abc"] == [True, False, True]
    assert cache.keep("d", window, 25.2)
    assert [known(cache, name, window) for name in "abcd"] == [False, False, False, True]


def test_no_flood_of_new_names_costs_a_robot_its_windows() -> None:
    robot = Camera("state", 100)
    cache, sent = robot.cache(robots=3), SentWindows()
    strange = cache.complete("x", SentWindows().update(robot.sent(0)))
    for step in range(100):
        window = cache.complete("robot", sent.update(robot.sent(step)))
        sent.replied(robot.sent(step), kept=cache.keep("robot", window, 0.05 * step))
        kept = [cache.keep(f"{step}/{number}", strange, 0.05 * step) for number in range(10)]
        assert sum(kept) == (2 if step == 0 else 0)
        assert known(cache, "robot", window)


def test_more_robots_than_there_is_room_for_ask_once_each() -> None:
    robots = {f"robot {seed}": Camera("state", 6, seed) for seed in range(260)}
    cache = WindowCache(H, S, robots=256)
    sides = {name: SentWindows() for name in robots}
    for step in range(6):
        whole = 0
        for name, robot in robots.items():
            update = sides[name].update(robot.sent(step))
            got = cache.complete(name, update)  # never unknown
            assert bits(got.values) == bits(robot.meant(step))
            sides[name].replied(robot.sent(step), kept=cache.keep(name, got, 0.05 * step))
            whole += update.base == WHOLE
        assert whole == (260 if step == 0 else 4)


def test_a_robot_that_finds_room_later_sends_only_what_is_new() -> None:
    first, second = Camera("state", 9, 1), Camera("state", 9, 2)
    cache, sent = first.cache(robots=1, max_age_s=10.0), SentWindows()
    cache.keep("first", cache.complete("first", SentWindows().update(first.sent(0))), 0.0)
    wholes = []
    for step in range(4):
        update = sent.update(second.sent(step))
        wholes.append(update.base == WHOLE)
        window = cache.complete("second", update)
        sent.replied(second.sent(step), kept=cache.keep("second", window, 6.0 * step))
    assert wholes == [True, True, True, False]


def numbers(size: int, value: float = 1.0) -> bytes:
    return np.full(size, value, np.float32).tobytes()


def halves(size: int, value: float = 1.0) -> bytes:
    return np.full(size, value, np.float16).tobytes()


IMAGE = b"\1\2\3\4"
WHOLE_REFUSED = {
    "no numbers and nothing else": (WireRows(b""), "observation_window: 0 values, must be a multiple of 4"),
    "no whole rows": (WireRows(numbers(H * S + 1)), "observation_window: 13 values"),
    "more than O": (WireRows(numbers(H * (S + F + 1))), "observation_window: 32 values, must be a multiple"),
    "no number": (WireRows(numbers(H * S, np.nan)), "observation_window[0]: nan, must be finite"),
    "infinite": (WireRows(numbers(H * S, np.inf)), "observation_window[0]: inf, must be finite"),
    "a feature too few": (
        WireRows(numbers(H * S), halves(H * F - 1)),
        "features: 15 values, must be 16, 4 per observation",
    ),
    "features of no row": (WireRows(numbers(H * (S + F)), halves(1)), "features: 1 values, must be 0"),
    "a feature that is no number": (
        WireRows(numbers(H * S), halves(H * F - 1) + b"\xff\xff"),
        "features[15]: nan, must be finite",
    ),
    "an infinite feature": (
        WireRows(numbers(H * S), halves(H * F, -np.inf)),
        "features[0]: -inf, must be finite",
    ),
    "images and features": (
        WireRows(numbers(H * S), halves(H * F), (IMAGE,) * CAMERAS * H),
        "images: 8 and features",
    ),
    "an image too few": (
        WireRows(numbers(H * S), b"", (IMAGE,) * (CAMERAS * H - 1)),
        "images: 7 values, must be 8, 2 per observation",
    ),
    "images that do not make F features": (
        WireRows(numbers(H * (S + 1)), b"", (IMAGE,) * CAMERAS * H),
        "images: 8 values, must be 0",
    ),
    "an image that is none": (
        WireRows(numbers(H * S), b"", (IMAGE, IMAGE, b"?") + (IMAGE,) * (CAMERAS * H - 3)),
        "images[2].data: 1 bytes, must be 4",
    ),
}
NEW_REFUSED = {
    "no whole row": (
        WireRows(numbers(S - 1)),
        "observation_window: 2 values after a base",
    ),
    "all rows": (
        WireRows(numbers(H * S)),
        "observation_window: 12 values after a base, must be a multiple of 3 and below 12",
    ),
    "more than all rows": (WireRows(numbers((H + 1) * S)), "observation_window: 15 values after a base"),
    "features without numbers": (
        WireRows(b"", halves(F)),
        "observation_window: 0 values, must be 3, 3 per observation",
    ),
    "features of other rows": (WireRows(numbers(S), halves(2 * F)), "features: 8 values, must be 4"),
    "images without numbers": (WireRows(b"", b"", (IMAGE,) * CAMERAS), "observation_window: 0 values"),
    "images of other rows": (WireRows(numbers(S), b"", (IMAGE,) * 3), "images: 3 values, must be 2"),
    "no number": (WireRows(numbers(2 * S, np.nan)), "observation_window[0]: nan"),
    "no image": (WireRows(numbers(S), b"", (IMAGE, b"")), "images[1].data: 0 bytes"),
}


@pytest.mark.parametrize(("rows", "message"), WHOLE_REFUSED.values(), ids=WHOLE_REFUSED)
def test_a_whole_window_that_is_none_is_refused(rows: WireRows, message: str) -> None:
    cache = Camera("images", 1).cache()
    with pytest.raises(RequestError, match=re.escape(message)) as refusal:
        cache.complete("a", WireWindow(WHOLE, rows, GOAL.tobytes()))
    finite = "must be finite" not in message
    assert refusal.value.fault is (RequestFault.WRONG_SHAPE if finite else RequestFault.NOT_FINITE)


@pytest.mark.parametrize(("rows", "message"), NEW_REFUSED.values(), ids=NEW_REFUSED)
def test_rows_that_do_not_fit_their_base_are_refused(rows: WireRows, message: str) -> None:
    robot = Camera("images", 1)
    cache = robot.cache()
    base = cache.complete("a", SentWindows().update(robot.sent(0)))
    cache.keep("a", base, 0.0)
    with pytest.raises(RequestError, match=re.escape(message)):
        cache.complete("a", WireWindow(base.digest, rows, b""))


def test_without_an_encoder_images_are_refused() -> None:
    cache, robot = WindowCache(H, S + F), Camera("images", 2)
    with pytest.raises(RequestError, match="images: 8, must be none: this verifier has no encoder"):
        cache.complete("a", SentWindows().update(robot.sent(0)))


def pictured(step: int, size: int = 100) -> WireWindow:
    """A whole window of one observation with one image of so many bytes."""
    return WireWindow(WHOLE, WireRows(np.float32(step).tobytes(), images=(bytes(size),)), b"")


def test_images_of_all_robots_together_are_bounded() -> None:
    cache = WindowCache(1, 1, robots=10, max_age_s=60.0, pictures=1, images_bytes=500)

    def kept(robot: str, step: int, now_s: float = 0.0) -> bool:
        return cache.keep(robot, cache.complete(robot, pictured(step)), now_s)

    assert all(kept("arm", step) for step in range(6))
    assert kept("other", 0)
    assert not kept("third", 0)  # four of the first, one of the second
    assert kept("other", 1)  # in the place of its own
    assert kept("arm", 6)
    assert kept("arm", 6)  # again, which takes no more
    base = cache.complete("third", pictured(0)).digest
    with pytest.raises(RequestError, match="is unknown"):
        cache.complete("third", WireWindow(base, WireRows(b""), b""))
    assert all(kept("third", step, 61.0) for step in range(5))  # the others are silent for too long
    assert kept("arm", 0, 61.0)
    assert not cache.keep("arm", cache.complete("arm", pictured(7, 501)), 61.0)
