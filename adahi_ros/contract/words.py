# SPDX-License-Identifier: Apache-2.0
"""Names of topics and types in a contract."""

from __future__ import annotations

import re
from typing import Annotated

from adahi_ros.core.schema import must

NAME = "[A-Za-z_][A-Za-z0-9_]*"
TOPIC = re.compile(f"/?{NAME}(/{NAME})*")
TYPE = re.compile(f"{NAME}/msg/{NAME}")
LONGEST_S = 1e6  # of any time, and the fastest rate

Word = Annotated[str, must("be a word", lambda text: text and not any(map(str.isspace, text)))]
