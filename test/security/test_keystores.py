"""Who gets which keys. `ros2 security` is stood in for; docs/how_to/secure.md has a trial with its own."""

from __future__ import annotations

import itertools
import os
import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from adahi_ros.core.assets import asset
from adahi_ros.security.keystores import Keystore, ros2_security
from adahi_ros.security.revocation import revoke

POLICIES = asset("config/sros2")
OTHERS = ("governance.p7s", "identity_ca.cert.pem", "permissions_ca.cert.pem")


class Security:
    """Stands in for `ros2 security`: files where it has them, that say whose they are."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        self._numbers = itertools.count()

    def __call__(self, *arguments: str | Path) -> None:
        self.calls.append(tuple(map(str, arguments)))
        verb, keystore, *rest = arguments
        keystore = Path(keystore)
        if verb == "create_keystore":
            for folder in ("public", "private", "enclaves"):
                (keystore / folder).mkdir(parents=True)
            (keystore / "private/identity_ca.key.pem").write_text("the authority's private key")
            return
        enclave = keystore / "enclaves" / str(rest[0]).lstrip("/")
        if verb == "create_enclave":
            enclave.mkdir(parents=True, exist_ok=True)
            (enclave / "key.pem").write_text(f"private key {next(self._numbers)} of {rest[0]}")
            for name in ("cert.pem", "permissions.p7s", *OTHERS):
                (enclave / name).write_text(f"{name} of {rest[0]}")
        else:
            assert verb == "create_permission"
            (enclave / "permissions.p7s").write_text(Path(rest[1]).read_text())


@pytest.fixture
def security() -> Security:
    return Security()


@pytest.fixture
def keystore(tmp_path: Path, security: Security) -> Keystore:
    return Keystore(tmp_path / "keys", POLICIES, security)


def keys_of(machine: Path) -> set[str]:
    """Return what is private in a machine's folder."""
    texts = {path.read_text() for path in machine.rglob("*") if path.is_file()}
    return {text for text in texts if "private" in text}


def test_a_machine_gets_its_own_private_keys_and_no_others(keystore: Keystore, tmp_path: Path) -> None:
    machines = keystore.make(["r1", "r2"])
    assert set(machines) == {"server", "monitor", "operator", "r1", "r2"}
    assert machines["r1"] == ["/adahi/r1", "/adahi/r1/drivers"]
    found = {name: keys_of(tmp_path / "keys/machines" / name) for name in machines}
    for name, keys in found.items():
        assert len(keys) == len(machines[name])
        assert {key.split(" of ")[1] for key in keys} == set(machines[name])


def test_permissions_are_those_of_the_policy(keystore: Keystore, tmp_path: Path) -> None:
    keystore.make(["r1", "r2"])
    permissions = (tmp_path / "keys/machines/r2/enclaves/adahi/r2/permissions.p7s").read_text()
    assert "/server/r2/verify_draft" in permissions
    assert "r1" not in permissions


def test_no_other_user_may_read_keys(keystore: Keystore, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        keystore.make(["r1"])
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
    made = list((tmp_path / "keys").rglob("*"))
    assert made
    assert not [path for path in made if path.stat().st_mode & 0o077]


def test_a_keystore_once_open_to_all_lets_no_other_user_read_a_key(
    keystore: Keystore, tmp_path: Path
) -> None:
    keystore.make(["r1"])
    for folder in (tmp_path / "keys", tmp_path / "keys/private"):  # as `ros2 security` makes them
        folder.chmod(0o755)
    keystore.make(["r1"])
    assert not (tmp_path / "keys").stat().st_mode & 0o077


def test_who_is_named_twice_is_revoked_once(
    keystore: Keystore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    revoked: list[Path] = []
    monkeypatch.setattr(
        "adahi_ros.security.keystores.revoke",
        lambda authority, key, certificates, to: revoked.extend(certificates),
    )
    keystore.make(["r1", "r2"])
    keystore.revoke(["r2", "r2"])
    assert len(revoked) == 2  # the robot's, and its drivers'
    assert keystore.robots == ["r1"]


def test_a_lost_server_gets_other_keys_and_the_former_are_revoked(
    keystore: Keystore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    revoked: list[str] = []
    monkeypatch.setattr(
        "adahi_ros.security.keystores.revoke",
        lambda authority, key, certificates, to: revoked.extend(each.read_text() for each in certificates),
    )
    keystore.make(["r1"])
    lost, robot = (keys_of(tmp_path / "keys/machines" / name) for name in ("server", "r1"))
    keystore.revoke(["server"])
    keystore.make([])
    assert revoked == ["cert.pem of /adahi/server"]
    assert not lost & keys_of(tmp_path / "keys/machines/server")
    assert keys_of(tmp_path / "keys/machines/r1") == robot


def test_keys_that_are_there_stay_and_permissions_are_signed_again(
    keystore: Keystore, security: Security, tmp_path: Path
) -> None:
    keystore.make(["r1"])
    before = keys_of(tmp_path / "keys/machines/r1")
    security.calls.clear()
    assert set(keystore.make(["r2"])) == {"server", "monitor", "operator", "r1", "r2"}
    assert keys_of(tmp_path / "keys/machines/r1") == before
    made = {call[2] for call in security.calls if call[0] == "create_enclave"}
    signed = {call[2] for call in security.calls if call[0] == "create_permission"}
    assert made == {"/adahi/r2", "/adahi/r2/drivers"}
    assert {"/adahi/r1", "/adahi/server"} < signed
    assert keystore.robots == ["r1", "r2"]


@pytest.mark.parametrize("name", ["server", "drivers", "robot", "r/1", "1r", "r-1", ".."])
def test_a_name_that_no_robot_may_have_is_refused_before_anything_is_made(
    keystore: Keystore, tmp_path: Path, name: str
) -> None:
    with pytest.raises(ValueError, match=f"--robots: '{name}'"):
        keystore.make([name])
    assert not (tmp_path / "keys").exists()


def test_only_who_has_keys_can_lose_them(keystore: Keystore) -> None:
    keystore.make(["r1"])
    with pytest.raises(ValueError, match="--revoke: 'r2', must be of those with keys: r1, server"):
        keystore.revoke(["r2"])


def test_without_ros2_security_it_says_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match=r"not installed; .*sros2"):
        ros2_security("create_keystore", "keys")


def test_what_ros2_security_says_last_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ros2 = tmp_path / "ros2"
    ros2.write_text('#!/bin/sh\necho first\necho "$3 is no keystore" >&2\nexit 1\n')
    ros2.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(
        RuntimeError, match=r"ros2 security create_enclave keys: failed, .*: keys is no keystore"
    ):
        ros2_security("create_enclave", "keys")


class Authority:
    """A certificate authority and whom it knows, by `openssl`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate, self.key = folder / "ca.pem", folder / "ca.key"
        self._run("req", "-x509", *self._new("ca"), "-subj", "/CN=authority", "-out", self.certificate)

    def member(self, name: str) -> Path:
        request, certificate = self.folder / f"{name}.csr", self.folder / f"{name}.pem"
        self._run("req", *self._new(name), "-subj", f"/CN={name}", "-out", request)
        signed = ("-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial", "-out", certificate)
        self._run("x509", "-req", "-in", request, *signed)
        return certificate

    def accepts(self, certificate: Path, revoked: Path) -> bool:
        """Whether openssl does, as it will in some weeks, too: a list that is over lets nobody in."""
        late = int((datetime.now(timezone.utc) + timedelta(days=20)).timestamp())
        checked = ("-crl_check", "-CRLfile", revoked, "-CAfile", self.certificate, "-attime", late)
        command = ["openssl", "verify", *map(str, checked), str(certificate)]
        return subprocess.run(command, capture_output=True).returncode == 0

    def _new(self, name: str) -> tuple[str | Path, ...]:
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
        return (*curve, "-nodes", "-keyout", self.folder / f"{name}.key")

    def _run(self, *arguments: str | Path) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def test_who_is_on_the_list_is_accepted_no_more_and_everyone_else_is(tmp_path: Path) -> None:
    pytest.importorskip("cryptography", reason="comes with sros2")
    authority = Authority(tmp_path)
    first, second, third = map(authority.member, ("r1", "r2", "r3"))
    revoked = tmp_path / "crl.pem"
    revoke(authority.certificate, authority.key, [second], revoked)
    assert [authority.accepts(each, revoked) for each in (first, second, third)] == [True, False, True]
    revoke(authority.certificate, authority.key, [third], revoked)
    assert [authority.accepts(each, revoked) for each in (first, second, third)] == [True, False, False]
