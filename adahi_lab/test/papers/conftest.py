"""Fixtures of the papers' rooms: an untrained pair of token policies."""

from __future__ import annotations

from test.policies.tokens.conftest import pair

__all__ = ["pair"]
