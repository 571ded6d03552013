# SPDX-License-Identifier: Apache-2.0
"""What a YAML file says of a policy server of others: where it is, what it is told beside observations."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from adahi_ros.policies.remote.target_fields import mapping, numbers, positive, text

TIMEOUT_S = 2.0
LONGEST_TIMEOUT_S = 60.0
INSTALL = "pip install -r requirements/remote_targets.txt"


@dataclass(frozen=True)
class ServerFields:
    """What a file says of a server.

    Attributes:
        url: with scheme, host and port.
        timeout_s: of a question.
        key: that the server asks for; empty where it asks for none.
        extra: by name, what is sent with each observation.
    """

    url: str
    timeout_s: float
    key: str
    extra: Mapping[str, Any]


def server_fields(values: dict[str, Any], schemes: Sequence[str], key: str) -> ServerFields:
    """Take what is of the server out of what a file says.

    Args:
        values: what is taken is removed.
        schemes: of addresses.
        key: name of the field that names an environment variable, so that no secret is in a file.

    Raises:
        ValueError: names the field, the value and what was allowed.
    """
    extra = mapping("extra", values.pop("extra", {}))
    return ServerFields(
        _address(values.pop("url", None), schemes),
        positive("timeout_s", values.pop("timeout_s", TIMEOUT_S), LONGEST_TIMEOUT_S),
        _secret(key, values.pop(key)) if key in values else "",
        {name: _constant(f"extra.{name}", value) for name, value in extra.items()},
    )


def digest_of(kind: str, values: Mapping[str, Any]) -> str:
    """Name what a file says, 32 hexadecimal digits. What weights its server has, it does not know."""
    said = json.dumps([kind, values], sort_keys=True, default=str)
    return blake2b(said.encode(), digest_size=16).hexdigest()


def need_packages(*names: str) -> None:
    """Import packages that only some targets need.

    Raises:
        ValueError: one is not installed; says how to.
    """
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise ValueError(f"{name}: must be installed ({error}): {INSTALL}") from None


def _address(value: Any, schemes: Sequence[str]) -> str:
    url = text("url", value)
    allowed = " or ".join(f"{scheme}://HOST:PORT" for scheme in schemes)
    try:
        parts = urlsplit(url)
        known = parts.scheme in schemes and parts.hostname and parts.port
    except ValueError:  # no such port
        known = False
    if not known or not url.isprintable() or " " in url or "@" in url:
        raise ValueError(f"url: {url!r}, must be {allowed}")
    return url


def _secret(where: str, value: Any) -> str:
    variable = text(where, value)
    secret = os.environ.get(variable, "")
    if not secret:
        raise ValueError(f"{where}: {variable!r}, must be the name of an environment variable that is set")
    return secret


def _constant(where: str, value: Any) -> Any:
    """Return what is sent of a constant: a list of numbers as an array (N,) float32, else as it is."""
    if isinstance(value, list):
        return numbers(where, value, len(value)).astype(np.float32)
    if not isinstance(value, bool | int | float | str):
        raise ValueError(f"{where}: {value!r}, must be a number, a text, true, false or a list of numbers")
    return value
