# SPDX-License-Identifier: Apache-2.0
"""As `flask_json.py`, with a production server, which keeps the connection between steps."""

from __future__ import annotations

from collections.abc import Callable

from waitress.server import create_server

from adahi_lab.peers.driving import peer
from adahi_lab.peers.flask_json import JsonClient, JsonServer


class WaitressServer(JsonServer):
    """The same Flask application, served by waitress."""

    def serve(self, address: str, port: int, ready: Callable[[], None]) -> None:
        """See `Server.serve`."""
        server = create_server(self.app, host=address, port=port)
        ready()
        server.run()


if __name__ == "__main__":
    peer("flask_waitress", WaitressServer, JsonClient)
