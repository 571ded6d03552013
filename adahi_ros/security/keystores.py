# SPDX-License-Identifier: Apache-2.0
"""An SROS 2 keystore for a server and its robots, and the folder for each machine.

`ros2 security` makes keys, certificates and signatures. The keystore has the authority's key, which signs all
others, and stays where it was made; `machines/NAME` in it has the files for one machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from adahi_ros.security.policies import OF_ROBOTS, ROLES, SERVER, EnclavePolicy, read_policy
from adahi_ros.security.revocation import revoke

MACHINES = "machines"
REVOKED = "crl.pem"  # the name that rmw_dds_common expects beside a key
FAMILY = "adahi"  # of all enclaves
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
COPIED = (
    "cert.pem",
    "governance.p7s",
    "identity_ca.cert.pem",
    "key.pem",
    "permissions.p7s",
    "permissions_ca.cert.pem",
)

Security = Callable[..., None]
"""Runs `ros2 security` with these arguments."""


def ros2_security(*arguments: str | Path) -> None:
    """Run a verb of `ros2 security`.

    Raises:
        RuntimeError: it is not installed, or has failed; the message has its last output.
    """
    command = ["ros2", "security", *map(str, arguments)]
    if shutil.which("ros2") is None:
        raise RuntimeError(
            "ros2 security: not installed; this needs a sourced ROS 2 with ros-$ROS_DISTRO-sros2"
        )
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        output = (made.stdout + made.stderr).strip().splitlines() or ["nothing"]
        raise RuntimeError(f"{' '.join(command)}: failed, and said: {output[-1]}")


class Keystore:
    """A keystore of SROS 2.

    Args:
        path: of the keystore; created if missing.
        policies: folder of policy files.
        security: makes keys.
    """

    def __init__(self, path: Path, policies: Path, security: Security = ros2_security) -> None:
        self._path = path
        self._policies = policies
        self._security = security

    @property
    def robots(self) -> list[str]:
        """The robots with keys."""
        folders = (self._path / "enclaves" / FAMILY).glob("*/key.pem")
        return sorted({key.parent.name for key in folders} - set(ROLES))

    def make(self, robots: Sequence[str]) -> dict[str, list[str]]:
        """Create missing keys for the server and these robots, and sign all permissions again.

        Existing keys are not changed.

        Returns:
            The enclaves of each machine; its folder is `machines/NAME`.

        Raises:
            ValueError: a robot's name is invalid; names it.
            RuntimeError: see `ros2_security`.
        """
        for name in robots:
            if not NAME.fullmatch(name) or name in ROLES or name in OF_ROBOTS:
                raise ValueError(
                    f"--robots: {name!r}, must be letters, digits and underscores, and none of "
                    + ", ".join([*ROLES, *OF_ROBOTS])
                )
        machines = {role: [read_policy(self._policies, role)] for role in ROLES}
        for robot in sorted({*self.robots, *robots}):
            machines[robot] = [read_policy(self._policies, role, robot) for role in OF_ROBOTS]
        with _only_for_this_user():
            if not self._path.exists():
                self._security("create_keystore", self._path)
            self._path.chmod(0o700)  # an existing one may have the permissions of `ros2 security`
            for policies in machines.values():
                for policy in policies:
                    self._sign(policy)
            return self._hand_out(machines)

    def revoke(self, robots: Sequence[str]) -> None:
        """Revoke the keys of robots or of the server, and remove them; `make` makes a server new ones.

        Raises:
            ValueError: a name has no keys here; names it.
        """
        server = [SERVER] if self._enclave(f"{FAMILY}/{SERVER}").joinpath("key.pem").exists() else []
        known = [*self.robots, *server]
        for name in robots:
            if name not in known:
                raise ValueError(f"--revoke: {name!r}, must be of those with keys: {', '.join(known)}")
        with _only_for_this_user():
            public, private = self._path / "public", self._path / "private"
            for name in dict.fromkeys(robots):
                folder = self._path / "enclaves" / FAMILY / name
                revoke(
                    public / "identity_ca.cert.pem",
                    private / "identity_ca.key.pem",
                    sorted(folder.rglob("cert.pem")),
                    public / REVOKED,
                )
                shutil.rmtree(folder)
                shutil.rmtree(self._path / MACHINES / name, ignore_errors=True)

    def _sign(self, policy: EnclavePolicy) -> None:
        """Create an enclave with a key, and permissions according to its policy."""
        if not self._enclave(policy.enclave).joinpath("key.pem").exists():
            self._security("create_enclave", self._path, policy.enclave)
        file = self._enclave(policy.enclave) / "policy.xml"
        policy.write(file)
        self._security("create_permission", self._path, policy.enclave, file)

    def _enclave(self, name: str) -> Path:
        return self._path / "enclaves" / name.lstrip("/")

    def _hand_out(self, machines: dict[str, list[EnclavePolicy]]) -> dict[str, list[str]]:
        """Copy to each machine's folder its own files: its own private keys, and no other's."""
        for name, policies in machines.items():
            folder = self._path / MACHINES / name
            shutil.rmtree(folder, ignore_errors=True)
            for policy in policies:
                there = folder / "enclaves" / policy.enclave.lstrip("/")
                there.mkdir(parents=True)
                for file in COPIED:  # which may be links to shared files
                    shutil.copyfile(self._enclave(policy.enclave) / file, there / file)
                if (self._path / "public" / REVOKED).exists():
                    shutil.copyfile(self._path / "public" / REVOKED, there / REVOKED)
        return {name: [policy.enclave for policy in policies] for name, policies in machines.items()}


@contextmanager
def _only_for_this_user() -> Iterator[None]:
    """Make new files readable only for this user; ros2 security lets all users read keys."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)
