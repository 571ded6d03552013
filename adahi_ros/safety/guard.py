"""Between a policy's actions and the wire, at every moment: what may go out, and when the robot is held.

It knows no clock: whoever asks says what time it is, on a clock that never jumps.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.intervention import Admitted, Intervention

HELD = frozenset(
    (
        Intervention.NOT_FINITE,
        Intervention.STALE,
        Intervention.DISABLED,
        Intervention.DEACTIVATED,
        Intervention.UNVERIFIED,
    )
)
LASTING = HELD - {Intervention.NOT_FINITE}  # counted once, however many commands they take
HOLDS_AT_REST = 3  # so many, for one may be lost on its way
SETTLED_S = 0.5  # after it was last moved the robot is where it is measured; sooner that is behind


@dataclass(frozen=True)
class GuardConfig:
    """When a robot is held.

    Attributes:
        period_s: of the control.
        hold_after_s: without an observation that the policy can act on.
        require_enable: it moves only while it is enabled.
        early: share of a control period by which a command may come before its time, and have a whole one.
        enable_timeout_s: so long a sign of life of whoever enables it lasts; where that is not required, too,
            a longer silence has let go.
    """

    period_s: float
    hold_after_s: float
    early: float = 0.0
    require_enable: bool = False
    enable_timeout_s: float = 0.5


class Guard:
    """Lets actions through the envelope, and holds the robot where something is wrong.

    A robot is held where there is no observation for too long, while it is not enabled, when it is stopped,
    and where its action is withheld; what has begun to hold it goes on until it is at rest, or an action is
    let through again.

    Who tells it to stop is obeyed until the stop is taken back: by whoever enables it until told otherwise,
    or by the topic `enable`, once that has let go. A `true` that only goes on saying what it said before
    the stop does not take it back; one after a `false`, or a silence of `enable_timeout_s`, does.

    Somebody may move a robot that is held. So motion begins where it is measured, once it has rested for
    `SETTLED_S`. Before that it goes on from what was commanded, for what is measured lags behind; but an
    entry that is further than `max_step` from there was displaced, and begins where it is measured all the
    same. What is not measured goes on from what was commanded.

    Attributes:
        counts: interventions since it was started.
        interventions: of the last command.
        stopped: it was told to stop, and is to stay so.

    Args:
        envelope: of the robot.
        config: when it is held.
        now_s: the time.
    """

    def __init__(self, envelope: Envelope, config: GuardConfig, now_s: float) -> None:
        self._envelope = envelope
        self._config = config
        self.counts: Counter[Intervention] = Counter()
        self.interventions: tuple[Intervention, ...] = ()
        self._active = False
        self._moving = False  # what was commanded may move the robot, or may have been lost
        self._why: Intervention | None = None  # it is held
        self._rested = 0
        self._held = True  # the next action ends a hold
        self._commanded: np.ndarray | None = None
        self._owed: tuple[np.ndarray, np.ndarray | None] | None = None
        self._put_s = self._moved_s = now_s
        self._earned_s = config.period_s
        self._heard_s = now_s
        self.stopped = False
        self._enabled_until_s = 0.0
        self._true_s = -np.inf  # when `enable` said so last; it has said nothing else since
        self._listened_s = now_s

    @property
    def active(self) -> bool:
        """Whether it lets actions through, where nothing holds the robot."""
        return self._active

    @property
    def moving(self) -> bool:
        """Whether `look` has yet to bring the robot to rest, should it have to."""
        return self._moving

    def enabled(self, now_s: float) -> bool:
        """Whether it may move the robot."""
        return self._active and not self.stopped and now_s < self._enabled_until_s

    def start(self, now_s: float) -> None:
        """Let actions through from now on."""
        self._active = True
        self._enabled_until_s = 0.0 if self._config.require_enable else np.inf
        self._heard_s = now_s
        self._commanded = self._owed = None
        self.counts.clear()
        self._hold_ends()

    def stop(self) -> None:
        """Let nothing through any more."""
        self._active = False

    def allow(self, now_s: float) -> None:
        """The topic `enable` says true: enable the robot, or go on."""
        lasts_s = self._config.enable_timeout_s
        self._listen(now_s)
        had_let_go = now_s - self._true_s >= lasts_s
        self._true_s = now_s
        if had_let_go or not self.stopped:
            self._enable(now_s, now_s + lasts_s if self._config.require_enable else np.inf)

    def forbid(self, now_s: float) -> None:
        """The topic `enable` says false: stop the robot."""
        self._true_s = -np.inf
        self.forbid_until_told(now_s)

    def allow_until_told(self, now_s: float) -> None:
        """Enable the robot until it is forbidden."""
        self._enable(now_s, np.inf)

    def forbid_until_told(self, now_s: float) -> None:
        """Stop the robot; also one that is not active, which is not to move when it is started."""
        self.stopped = True

    def heard(self, now_s: float) -> None:
        """There was a new observation that the policy can act on."""
        self._held |= self._is_stale(now_s)
        self._heard_s = now_s

    def act(self, wanted: np.ndarray, measured: np.ndarray | None, now_s: float) -> np.ndarray | None:
        """Return what is commanded in the place of a wanted action (A,); None where nothing is.

        Args:
            wanted: any numbers.
            measured: positions (A,) of what is commanded, NaN where unknown; None where none is known.
            now_s: the time.
        """
        self._commanded = self._owed = None
        why = self._fault(now_s)  # stale where the observation is long past
        if why is not None:
            self._owed = (wanted, measured)
            self._count((why,))
            return None
        if measured is not None and self._envelope.limits.far_outside(measured):
            # Nothing is known of where it is. At rest it stays as it is.
            if self._moving:
                return self._brake(Intervention.POSITION, now_s)
            self._count((Intervention.POSITION,))
            return None
        interval_s = self._interval_s(now_s)
        displaced = self._held and self._go_on(measured, interval_s, now_s)
        self._held = False
        self._why = None
        self._rested = 0
        self._moving = True
        self._moved_s = now_s
        admitted = self._envelope.admit(wanted, measured, interval_s)
        told = (Intervention.DISPLACED,) if displaced else ()
        self._commanded = self._put(Admitted(admitted.action, told + admitted.interventions))
        return self._commanded

    def withhold(self, now_s: float) -> np.ndarray | None:
        """Return what holds the robot, for its action may not go without the target; None at rest."""
        self._commanded = self._owed = None
        self._count((self._fault(now_s) or Intervention.UNVERIFIED,))
        return self.look(now_s)

    def repeat(self, now_s: float) -> np.ndarray | None:
        """Return the last action's command again, for an observation that was repeated.

        None where the robot was held since: an observation that only repeats itself does not tell that the
        robot may move. But one that never got its action, because the robot was not enabled or the reply
        came too late, gets it.
        """
        if self._owed is not None and self.enabled(now_s):
            self.heard(now_s)
            return self.act(*self._owed, now_s)
        return self._commanded if self._fault(now_s) is None else None

    def look(self, now_s: float) -> np.ndarray | None:
        """Return the command that holds the robot where that is due; to be asked every control period."""
        self._listen(now_s)
        why = self._fault(now_s) or self._why
        if not self._moving or why is None:
            return None
        self._commanded = None
        if why is not self._why:
            self._rested = 0
        return self._brake(why, now_s)

    def halt(self, now_s: float) -> np.ndarray | None:
        """Return the command that stops at once, whatever the acceleration: for when nobody will be there."""
        self._envelope.begin(None)
        self._moving = False
        return self._put(self._envelope.hold(None, self._config.period_s, Intervention.DEACTIVATED))

    def _brake(self, why: Intervention, now_s: float) -> np.ndarray | None:
        held = self._put(self._envelope.hold(None, self._interval_s(now_s), why))
        self._held = True
        if self._envelope.at_rest:
            self._rested += 1
        else:
            self._rested = 0
            self._moved_s = now_s
        self._moving = self._rested < HOLDS_AT_REST
        return held

    def _go_on(self, measured: np.ndarray | None, interval_s: float, now_s: float) -> bool:
        """End a hold; return whether the robot was displaced meanwhile."""
        displaced = self._envelope.begin_displaced(measured, interval_s)
        if not self._moving and now_s - self._moved_s >= SETTLED_S:
            self._envelope.begin(measured)
        return displaced

    def _fault(self, now_s: float) -> Intervention | None:
        """Return why nothing may move the robot now."""
        if not self._active:
            return Intervention.DEACTIVATED
        if not self.enabled(now_s):
            return Intervention.DISABLED
        if self._is_stale(now_s):
            return Intervention.STALE
        return None

    def _is_stale(self, now_s: float) -> bool:
        return now_s - self._heard_s > self._config.hold_after_s

    def _enable(self, now_s: float, until_s: float) -> None:
        if not self._active:
            return
        if not self.enabled(now_s):
            self._hold_ends()
        self.stopped = False
        self._enabled_until_s = until_s

    def _listen(self, now_s: float) -> None:
        """Let time in which nobody looked be no silence of `enable`: what it said then is yet to be heard."""
        deaf_s = now_s - self._listened_s - self._config.period_s
        self._listened_s = now_s
        if deaf_s > 0.0:
            self._true_s += deaf_s

    def _hold_ends(self) -> None:
        """Take note that the robot was held, and may move again."""
        self._held = True
        if not self._moving:
            self._why = None

    def _interval_s(self, now_s: float) -> float:
        """Return the time that the next command has: a control period, or less where they come too fast.

        A command is to be reached in a period, so more would do no good after a pause. But what is commanded
        between two periods must share them, or a flood of observations would move the robot too fast.
        """
        period_s = self._config.period_s
        self._earned_s = min(self._earned_s + now_s - self._put_s, (1.0 + self._config.early) * period_s)
        self._put_s = now_s
        interval_s = min(self._earned_s, period_s)
        self._earned_s -= interval_s
        return interval_s

    def _put(self, admitted: Admitted) -> np.ndarray | None:
        self._count(admitted.interventions)
        return admitted.action

    @property
    def holding(self) -> bool:
        """Whether the last command, or that there was none, was to hold the robot."""
        return not HELD.isdisjoint(self.interventions)

    def _count(self, interventions: tuple[Intervention, ...]) -> None:
        self.interventions = interventions
        for why in interventions:
            if why in LASTING and why is self._why:
                continue
            self.counts[why] += 1
            if why in LASTING:
                self._why = why
        if self.holding:
            self._held = True
