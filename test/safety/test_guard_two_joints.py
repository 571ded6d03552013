"""What one joint of several, a hold without a press, or an unknown place does to an arm."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.guard import SETTLED_S, Guard, GuardConfig
from adahi_ros.safety.holds import Event
from adahi_ros.safety.intervention import Intervention
from adahi_ros.safety.limits import Limits



from adahi_ros.safety.motion import HOLDS_AT_REST
from adahi_ros.safety.permission import Permission
from test.safety.conftest import HOLD_AFTER_S, PERIOD_S, Robot, listed
