"""Keys go to attested replicas only: to admitted programs, on known platforms, that are not revoked."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml
from test.papers.s3ml.conftest import MEASUREMENT, NAME, World

from adahi_lab.papers.s3ml import key_http
from adahi_lab.papers.s3ml.attestation import (
    AttestationError,
    Attester,
    EmulatedAppraiser,
    Evidence,
    load_admitted,
    measure,
    measure_replica,
)
from adahi_lab.papers.s3ml.key_files import MOST_FILES, packed, secret_of, unpack
from adahi_lab.papers.s3ml.key_http import fetch_keys
from adahi_lab.papers.s3ml.key_service import NONCE_S, KeyRequest, KeyService, fetch, report_of
from test.waiting import wait_for

OTHER = "cd" * 32


def test_an_attested_replica_gets_the_keys_as_they_are(world: World) -> None:
    out = world.folder / "out"
    unpack(world.get(world.platform), out)
    for path in world.machine.rglob("*.pem"):
        copy = out / path.relative_to(world.machine)
        assert copy.read_bytes() == path.read_bytes()
        assert copy.stat().st_mode & 0o777 == 0o600
    assert out.stat().st_mode & 0o777 == 0o700
    assert world.lines == [f"released: to '{NAME}', measurement {MEASUREMENT[:16]}"]


def refusals(world: World) -> dict[str, tuple[Attester, dict[str, Any], str]]:
    class Altered(Attester):
        def attest(self, report: bytes) -> Evidence:
            return replace(world.on(OTHER).attest(report), measurement=MEASUREMENT)

    return {
        "another program": (world.on(OTHER), {}, "measurement: not admitted"),
        "an unknown platform": (world.on(MEASUREMENT, name="rack_2"), {}, "platform: unknown"),
        "a stranger's key": (world.on(MEASUREMENT, key="stolen"), {}, "signature: not of this platform"),
        "an altered measurement": (Altered(), {}, "signature: not of this platform"),
        "a revoked platform": (world.platform, {"revoked": [NAME]}, f"{NAME}: revoked"),
        "a revoked program": (world.platform, {"revoked": [MEASUREMENT]}, f"{MEASUREMENT}: revoked"),
        "no program": (world.platform, {"measurements": []}, "measurement: not admitted"),
    }


@pytest.mark.parametrize(
    "case",
    [
        *("another program", "an unknown platform", "a stranger's key", "an altered measurement"),
        *("a revoked platform", "a revoked program", "no program"),
    ],
)
def test_others_get_no_key(case: str, world: World) -> None:
    attester, changes, reason = refusals(world)[case]
    world.admit(**changes)
    with pytest.raises(AttestationError, match=f"^{reason}$"):
        world.get(attester)
    assert len(world.lines) == 1
    assert world.lines[0].startswith("refused: ")


def test_a_revocation_holds_without_a_restart(world: World) -> None:
    world.get(world.platform)
    world.admit(revoked=[NAME])
    with pytest.raises(AttestationError, match="revoked"):
        world.get(world.platform)


@pytest.mark.parametrize("waits_s", [0.0, NONCE_S + 1.0])
def test_a_nonce_serves_once_and_not_for_long(waits_s: float, world: World) -> None:
    nonce, public = world.service.challenge(), secret_of(world.folder / "any")
    request = KeyRequest(nonce, public, world.platform.attest(report_of(nonce, public)))
    world.now_s += waits_s
    if not waits_s:
        world.service.release(request)
    with pytest.raises(AttestationError, match="nonce: unknown, used or too old"):
        world.service.release(request)


def test_a_flood_of_challenges_voids_no_nonce_and_is_not_stored(world: World) -> None:
    nonce, public = world.service.challenge(), secret_of(world.folder / "any")
    before = entries(world.service)
    for _ in range(5000):
        world.service.challenge()
    assert entries(world.service) == before
    world.service.release(KeyRequest(nonce, public, world.platform.attest(report_of(nonce, public))))


def entries(service: KeyService) -> int:
    """Return the number of entries in all containers of a service."""
    return sum(len(value) for value in vars(service).values() if hasattr(value, "__len__"))


@pytest.mark.parametrize("change", [0, 7, 8, 15, 16, 31])
def test_a_nonce_that_the_service_did_not_make_is_refused(change: int, world: World) -> None:
    nonce, public = bytearray(world.service.challenge()), secret_of(world.folder / "any")
    nonce[change] ^= 1
    other = KeyService(world.machine, world.admitted, EmulatedAppraiser(world.admitted), lambda: 0.0)
    for made in (bytes(nonce), bytes(32), b"", bytes(nonce) + b"x", other.challenge()):
        request = KeyRequest(made, public, world.platform.attest(report_of(made, public)))
        with pytest.raises(AttestationError, match="nonce: unknown, used or too old"):
            world.service.release(request)


def test_a_refused_request_voids_no_nonce_of_another(world: World) -> None:
    nonce, public = world.service.challenge(), secret_of(world.folder / "any")
    request = KeyRequest(nonce, public, world.platform.attest(report_of(nonce, public)))
    forged = replace(request, evidence=replace(request.evidence, signature=bytes(64)))
    with pytest.raises(AttestationError, match="signature"):
        world.service.release(forged)
    world.service.release(request)


def test_words_of_a_request_forge_no_line_of_the_log(world: World) -> None:
    evil = "x\nreleased: to 'rack_1'"
    nonce = world.service.challenge()
    evidence = Evidence(evil, evil, report_of(nonce, b""), b"")
    with pytest.raises(AttestationError):
        world.service.release(KeyRequest(nonce, b"", evidence))
    assert len(world.lines) == 1
    assert world.lines[0].isprintable()


def test_a_link_in_the_folder_of_keys_is_refused_by_name(world: World) -> None:
    (world.folder / "secret").write_text("of another machine")
    for target in (world.folder / "secret", world.folder):
        link = world.machine / "enclaves/link.pem"
        link.symlink_to(target)
        with pytest.raises(ValueError, match=r"enclaves/link.pem: a symbolic link, must be a copy"):
            packed(world.machine)
        link.unlink()


def test_evidence_of_another_request_opens_nothing(world: World) -> None:
    """A replica in the middle cannot pass another's evidence with a key of its own."""
    seen = world.platform.attest(report_of(world.service.challenge(), b"its key".ljust(32)))
    nonce, own = world.service.challenge(), b"my key".ljust(32)
    for evidence in (seen, replace(seen, report=report_of(nonce, own))):
        with pytest.raises(AttestationError, match=r"report: not of|nonce: |signature: not of"):
            world.service.release(KeyRequest(nonce, own, evidence))


def test_keys_are_sealed_for_one_replica(world: World) -> None:
    sealed = world.service.release
    nonce = world.service.challenge()
    public = secret_of(world.folder / "any")
    taken = sealed(KeyRequest(nonce, public, world.platform.attest(report_of(nonce, public))))
    assert b"private key" not in taken.content
    with pytest.raises(AttestationError, match="sealed for another replica"):
        fetch(world.platform, world.service.challenge, lambda request: taken)


def test_a_measurement_is_of_program_and_policy(tmp_path: Path) -> None:
    package, policies = tmp_path / "package", tmp_path / "policies"
    for folder in (package / "deep", policies):
        folder.mkdir(parents=True)
    (package / "deep/module.py").write_text("a = 1")
    for name in ("target.json", "target.onnx", "draft.json"):
        (policies / name).write_text(name)

    def measured() -> str:
        return measure_replica(policies / "target", [package])

    before = measured()
    (policies / "draft.json").write_text("another")
    assert measured() == before
    for path, content in ((package / "deep/module.py", "a = 2"), (policies / "target.onnx", "other weights")):
        kept = path.read_text()
        path.write_text(content)
        assert measured() != before
        path.write_text(kept)
    (package / "deep/module.py").rename(package / "deep/other.py")
    assert measured() != before
    with pytest.raises(FileNotFoundError, match="no such checkpoint"):
        measure_replica(policies / "absent", [package])
    with pytest.raises(ValueError, match="must be at least one"):
        measure([])


def test_what_a_policy_in_yaml_names_is_measured_too(tmp_path: Path) -> None:
    package = tmp_path / "package"
    plans, act = tmp_path / "plans", tmp_path / "act"
    for folder in (package, plans, act):
        folder.mkdir()
    (plans / "target.yaml").write_text("{kind: layered, checkpoint: ../between, at_once: 4}")
    (tmp_path / "between.yaml").write_text(
        "{kind: several, members: [one, ball/draft, three.yml], folder: act}"
    )
    content = {"one.json": tmp_path, "one.onnx": tmp_path, "config.json": act, "model.safetensors": act}
    content["three.yml"] = tmp_path
    for name, folder in content.items():
        (folder / name).write_text(name)
    (tmp_path / "two.json").write_text("named by none")

    def measured() -> str:
        return measure_replica(plans / "target", [package])

    before = measured()
    for name, folder in (*content.items(), ("between.yaml", tmp_path)):
        kept = (folder / name).read_text()
        (folder / name).write_text(kept + " ")
        assert measured() != before, name
        (folder / name).write_text(kept)
    (tmp_path / "two.json").write_text("still by none")
    assert measured() == before
    (tmp_path / "between.yaml").write_text("{kind: widths, checkpoint: ../plans/target}")  # a circle
    assert measured() != before


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"measurements": ["AB" * 32]}, "must be 64 lower-case hexadecimal digits"),
        ({"platforms": {}}, "measurements: missing"),
        ({"measurements": [], "platforms": {"x": "12"}}, "must be 64 lower-case"),
        ({"measurements": [], "colour": 1}, "colour: unknown"),
    ],
)
def test_a_file_that_admits_is_checked(content: dict[str, Any], reason: str, tmp_path: Path) -> None:
    (tmp_path / "admitted.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(ValueError, match=reason):
        load_admitted(tmp_path / "admitted.yaml")


@pytest.mark.parametrize("name", ["../key.pem", "/etc/key.pem", "a/../../b", "", "a\\b"])
def test_packed_files_stay_in_their_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must be a path below the folder"):
        unpack(json.dumps({"good.pem": "", name: ""}).encode(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_packed_is_bounded(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"0 files, must be 1 to {MOST_FILES}"):
        packed(tmp_path)
    (tmp_path / "large").write_bytes(os.urandom(2**20))
    with pytest.raises(ValueError, match="bytes, must be at most"):
        packed(tmp_path)
    with pytest.raises(ValueError, match="not packed files"):
        unpack(b"[]", tmp_path / "out")
    (tmp_path / "key").write_text("short")
    with pytest.raises(ValueError, match="no secret, must be 32 bytes"):
        secret_of(tmp_path / "key")


@pytest.mark.timeout(30)
def test_over_http_the_same_replicas_get_keys(url: str, world: World) -> None:
    assert fetch_keys(url, world.platform) == packed(world.machine)
    with pytest.raises(AttestationError, match=r"refuses \(403\): .*measurement: not admitted"):
        fetch_keys(url, world.on(OTHER))


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"[" * 4000,
        b"{",
        b'{"nonce": 1}',
        b"x" * 5000,
        json.dumps(dict.fromkeys("abcde", "")).encode(),
    ],
)
def test_what_is_no_request_is_refused(body: bytes, url: str) -> None:
    with pytest.raises(HTTPError) as refused:
        urlopen(Request(f"{url}/keys", body, method="POST"), timeout=10)
    assert refused.value.code == 400


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("measurement", "x\nreleased: to 'rack_1'"),
        ("measurement", "AB" * 32),
        ("platform", "rack\n1"),
        ("platform", ""),
    ],
)
def test_a_request_has_words_of_the_right_kind(name: str, value: str, url: str, world: World) -> None:
    fields = {"nonce": "00", "public": "00", "platform": NAME, "measurement": MEASUREMENT, "signature": ""}
    body = json.dumps({**fields, name: value}).encode()
    with pytest.raises(HTTPError) as refused:
        urlopen(Request(f"{url}/keys", body), timeout=10)
    assert refused.value.code == 400
    assert name in refused.value.read().decode()
    assert world.lines == []


@pytest.mark.timeout(30)
@pytest.mark.parametrize("fault", ["admitted", "keys"])
def test_a_client_sees_no_path_of_the_service(fault: str, url: str, world: World) -> None:
    if fault == "admitted":
        world.admitted.unlink()
    else:
        (world.machine / "link.pem").symlink_to("/etc/passwd")
    with pytest.raises(AttestationError, match=r"refuses \(500\)") as refused:
        fetch_keys(url, world.platform)
    assert str(world.folder) not in str(refused.value)
    assert str(world.folder) in world.lines[-1]


@pytest.mark.timeout(30)
def test_a_client_that_is_cut_prints_nothing(url: str, world: World, capfd: Any) -> None:
    host, port = url.removeprefix("http://").split(":")
    for sent in (
        b"",
        b"POST /keys HTTP/1.0\r\nContent-Length: 9\r\n\r\n{",
        b"GET /challenge HTTP/1.0\r\n\r\n" * 999,
    ):
        client = socket.create_connection((host, int(port)))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset at its end
        client.sendall(sent)
        client.close()
    assert fetch_keys(url, world.platform) == packed(world.machine)
    wait_for(lambda: threading.active_count() <= 3)
    assert capfd.readouterr().err == ""


@pytest.mark.timeout(30)
def test_silent_clients_do_not_block_others(url: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    address = url.removeprefix("http://").split(":")
    silent = [socket.create_connection((address[0], int(address[1]))) for _ in range(8)]
    assert fetch_keys(url, world.platform) == packed(world.machine)
    monkeypatch.setattr(key_http, "TIMEOUT_S", 0.1)
    slow = socket.create_connection((address[0], int(address[1])))
    slow.sendall(b"GET /challenge")
    assert slow.recv(1) == b""  # the service closed it
    for each in (*silent, slow):
        each.close()


@pytest.mark.timeout(30)
def test_no_key_service_is_an_error_with_its_url(world: World) -> None:
    with pytest.raises(OSError, match=r"http://127\.0\.0\.1:9/challenge: "):
        fetch_keys("http://127.0.0.1:9", world.platform)
    with pytest.raises(ValueError, match="must begin with http"):
        fetch_keys("file:///etc/passwd", world.platform)
