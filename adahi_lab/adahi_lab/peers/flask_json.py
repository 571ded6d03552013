# SPDX-License-Identifier: Apache-2.0
"""Flask and JSON over HTTP, as in the ADAHI paper: the draft is posted, the target verifies it.

A Flask application on the server of `app.run(threaded=True)`, and a `requests.Session`. That server closes
the connection after every reply, so every step opens a new one; `flask_waitress.py` keeps it.
See `driving.py` for how to run it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import numpy as np
import requests
from flask import Flask, request
from werkzeug.serving import make_server

from adahi_lab.peers.driving import Client, DraftVerifier, peer
from adahi_ros.policies.interface import Policy


class JsonServer:
    """Verifies what is posted to /verify."""

    def __init__(self, policy: Policy) -> None:
        self._verifier = DraftVerifier(policy)
        self.app = Flask(__name__)
        self.app.post("/verify")(self._verify)

    def serve(self, address: str, port: int, ready: Callable[[], None]) -> None:
        """See `Server.serve`."""
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # avoids a line per step
        server = make_server(address, port, self.app, threaded=True)
        ready()
        server.serve_forever()

    def _verify(self) -> dict[str, object]:
        posted = request.get_json()
        start = time.perf_counter()
        verdict = self._verifier.verify(
            np.array(posted["window"], np.float32),
            np.array(posted["goal"], np.float32),
            np.array(posted["codes"]),
            np.array(posted["counts"]),
        )
        reply = {"actions": verdict.actions[0].tolist(), "accepted": verdict.accepted[0].tolist()}
        return {**reply, "compute_ms": 1e3 * (time.perf_counter() - start)}


class JsonClient(Client):
    """Posts drafts."""

    failures = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)

    def __init__(self, address: str, port: int, timeout_s: float, policy: Policy) -> None:
        self._url = f"http://{address}:{port}/verify"
        self._timeout_s = timeout_s
        self._session = requests.Session()

    def connect(self) -> None:
        """Start a session; the first request connects."""
        self._session = requests.Session()

    def ask(
        self, window: np.ndarray, goal: np.ndarray, codes: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """See `Client.ask`."""
        request = {
            "window": window.tolist(),
            "goal": goal.tolist(),
            "codes": codes.tolist(),
            "counts": counts.tolist(),
        }
        response = self._session.post(self._url, json=request, timeout=self._timeout_s)
        response.raise_for_status()
        reply = response.json()
        return np.array(reply["actions"], np.float32), reply["compute_ms"]

    def close(self) -> None:
        """See `Client.close`."""
        self._session.close()


if __name__ == "__main__":
    peer("flask_json", JsonServer, JsonClient)
