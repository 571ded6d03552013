# SPDX-License-Identifier: Apache-2.0
"""`adahi serve keys` and `adahi serve fetch`: keys for attested verifiers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from adahi_ros.cli.terminal import say
from adahi_ros.core.verb_help import VerbHelp

EMULATED = "the attestation is emulated and protects nothing: for tests and trials"
HELP = VerbHelp(groups={"serve": "Serve policies to a fleet of robots, and keys to attested verifiers."})


def keys(
    keystore: Annotated[Path, Argument(help="Keystore of 'adahi keys'.")],
    admitted: Annotated[
        Path, Option(help="YAML file: admitted measurements, public keys of platforms, and what is revoked.")
    ],
    host: Annotated[str, Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="0 for any free one.")] = 7800,
) -> None:
    """Release a verifier's keys to attested replicas, until Ctrl-C."""
    from adahi_lab.papers.s3ml.attestation import EmulatedAppraiser, load_admitted
    from adahi_lab.papers.s3ml.key_http import key_server
    from adahi_lab.papers.s3ml.key_service import KeyService
    from adahi_ros.security.keystores import MACHINES
    from adahi_ros.security.policies import SERVER

    load_admitted(admitted)
    machine = keystore / MACHINES / SERVER
    if not machine.is_dir():
        raise ValueError(f"keystore: {keystore}, has no keys of a server; 'adahi keys {keystore}' makes them")
    service = KeyService(machine, admitted, EmulatedAppraiser(admitted), time.monotonic, say)
    with key_server(service, host, port) as server:
        say(f"{EMULATED}\nreleases keys at http://{host}:{server.server_address[1]}; Ctrl-C stops it")
        server.serve_forever()


def fetch(
    checkpoint: Annotated[str, Argument(help="Target policy, DIRECTORY/NAME, which is measured.")],
    platform: Annotated[Path, Option(help="Private key of the emulated platform; created if missing.")],
    name: Annotated[str, Option(help="Name of the platform.")] = "platform",
    service: Annotated[str, Option(help="URL of the key service; '' only prints what its file needs.")] = "",
    out: Annotated[
        Path | None, Option(help="New folder for the keys, best in memory, such as /dev/shm/adahi.")
    ] = None,
) -> None:
    """Attest this machine's verifier, and get its keys."""
    from adahi_lab.papers.s3ml.attestation import AttestationError, EmulatedPlatform, measure_replica
    from adahi_lab.papers.s3ml.key_files import unpack
    from adahi_lab.papers.s3ml.key_http import fetch_keys
    from adahi_ros.core.assets import CHECKPOINTS, named

    measurement = measure_replica(named(checkpoint, CHECKPOINTS))
    attester = EmulatedPlatform(platform, name, measurement)
    if not service:
        say(f"measurements: ['{measurement}']\nplatforms: {{{name}: '{attester.public}'}}")
        return
    if out is None:
        raise ValueError("out: none, must be given with a service")
    try:
        unpack(fetch_keys(service, attester), out)
    except AttestationError as refused:
        raise RuntimeError(f"no keys: {refused}") from None
    say(
        f"{EMULATED}\n"
        f"export ROS_SECURITY_ENABLE=true ROS_SECURITY_STRATEGY=Enforce ROS_SECURITY_KEYSTORE={out}"
    )
