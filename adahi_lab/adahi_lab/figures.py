# SPDX-License-Identifier: Apache-2.0
"""The type of measured figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Figures = Mapping[str, Any]
"""What was measured, by name, as JSON has it: numbers, strings, lists, and mappings of the same kind."""
