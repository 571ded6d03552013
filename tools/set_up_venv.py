# SPDX-License-Identifier: Apache-2.0
"""Make .venv ready: packages, ROS 2, the built adahi_msgs, adahi_ros and adahi_lab themselves.

The environment variable ROS names another distribution of the wheels, with a separate environment.

Each stage is stamped, after its work, with a hash of its inputs. A second run does nothing, an interrupted
one continues where it stopped, and an edited message only rebuilds the messages.

python tools/set_up_venv.py       # what `make test` and all commands need
python tools/set_up_venv.py demo  # what `adahi demo`, `top` and `report` need: no torch, no test tools
python tools/set_up_venv.py lerobot  # LeRobot, in an environment in the user's cache: all checkouts share it;
                                     # its `adahi` is that of the last one

`tools/set_up` finds the Python for it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from logged_commands import SetUpError, run_logged
from machine import PYTHON, missing_from_machine

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / "tools"
REQUIREMENTS = ROOT / "requirements"
PIP = REQUIREMENTS / "pip.txt"
MESSAGES = ROOT / "adahi_msgs"
LAB = ROOT / "adahi_lab"
FOR_TESTS = [ROOT / "test" / name for name in ("control_msgs", "controller_manager_msgs", "moveit_msgs")]
DEMO, LEROBOT = "demo", "lerobot"
FOR_DEMO = ("robot.txt", "demo.txt")
FOR_LEROBOT = (*FOR_DEMO, "lerobot.txt")
FOR_ALL = ("runtime.txt", "remote_targets.txt", "metrics.txt", "tune.txt", "dev.txt")
JAZZY = "jazzy"
WHEELS = os.environ.get("ROS") or JAZZY
PINS = {JAZZY: "ros.txt", "kilted": "ros_kilted.txt"}
SUFFIX = "" if WHEELS == JAZZY else f"-{WHEELS}"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "adahi_ros" / LEROBOT
IN_CACHE = sys.argv[1:] == [LEROBOT]
VENV = CACHE / "venv" if IN_CACHE else ROOT / f".venv{SUFFIX}"
VENV_PYTHON = VENV / "bin" / "python"
SITE_PACKAGES = VENV / "lib" / PYTHON / "site-packages"
STAMPS = VENV / "set_up.json"
BUILD = CACHE / "build" if IN_CACHE else ROOT / "build" / f"set_up{SUFFIX}"
LOG = BUILD / "log.txt"
run = partial(run_logged, LOG)
TORCH_WITHOUT_CUDA = (
    "--index-url",
    "https://download.pytorch.org/whl/cpu",
    "--retries",
    "0",
    "--timeout",
    "10",
)

# All packages except their tests, on every core. Files that cannot be compiled fail on import.
COMPILE = """
import compileall, re, sys
compileall.compile_dir(sys.argv[1], quiet=2, workers=0, rx=re.compile("/(tests?|testing)/"))
"""


@dataclass(frozen=True)
class Ros:
    """The ROS 2 of the environment.

    Attributes:
        distribution: such as "jazzy"; empty for the wheels.
        paths: its entries in each path variable; empty for the wheels.
    """

    distribution: str = ""
    paths: dict[str, list[str]] = field(default_factory=dict)


# This machine


def sourced_ros() -> Ros:
    """Return the ROS 2 that is sourced in this shell, without the rest of this shell's paths."""
    prefixes = [p for p in path_entries("AMENT_PREFIX_PATH") if not Path(p).is_relative_to(VENV)]
    if not (prefixes and os.environ.get("ROS_DISTRO")):
        return Ros()
    paths = {
        name: [e for e in path_entries(name) if any(Path(e).is_relative_to(p) for p in prefixes)]
        for name in ("AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH")
    }
    return Ros(os.environ["ROS_DISTRO"], paths)


def path_entries(variable: str) -> list[str]:
    return [entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry]


def ros_to_use(before: Ros) -> Ros:
    """Return the sourced ROS 2, else that of the last set-up of .venv."""
    sourced = sourced_ros()
    if sourced in (Ros(), before):
        return before
    check = subprocess.run([sys.executable, "-c", "import rclpy"], capture_output=True, check=False)
    if check.returncode != 0:
        raise SetUpError(
            f"ROS 2 {sourced.distribution} is sourced, but {sys.executable} cannot import its rclpy. Name "
            "the Python it was built for (make PYTHON=/usr/bin/python3 ...), or use a shell without it"
        )
    return sourced


def child_environment(ros: Ros) -> dict[str, str]:
    """Return the environment for commands: this ROS 2 and .venv, nothing of another one or of make."""
    dropped = {"PYTHONPATH", "PYTHONHOME", "AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH", "COLCON_PREFIX_PATH"}
    dropped |= {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "DESTDIR", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    for name, entries in ros.paths.items():
        present = environment.get(name, "")
        environment[name] = os.pathsep.join([*entries, *([present] if present else [])])
    environment["PATH"] = os.pathsep.join([str(VENV / "bin"), environment.get("PATH", os.defpath)])
    return environment


# Stages


def make_venv(ros: Ros, title: str) -> None:
    if VENV.exists():
        shutil.rmtree(VENV)
    VENV.mkdir()
    STAMPS.write_text("{}")  # marks this .venv as ours, in case of an interruption
    system_packages = ["--system-site-packages"] if ros.distribution else []
    run([sys.executable, "-m", "venv", *system_packages, VENV], child_environment(ros), title)
    pip_install(ros, title, "-r", PIP)


def pip_install(ros: Ros, title: str, *arguments: str | Path) -> None:
    """Install packages; without pip's compilation, which uses one core."""
    options = ["--progress-bar", "off", "--disable-pip-version-check", "--no-compile"]
    run([VENV_PYTHON, "-m", "pip", "install", *options, *arguments], child_environment(ros), title)


def install_for_demo(ros: Ros, title: str) -> None:
    forget_interrupted()
    install_files(ros, title, [*FOR_DEMO, *pins(ros)], "-c", constraints())
    make_usable(ros, title)


def install_for_lerobot(ros: Ros, title: str) -> None:
    """Install LeRobot with its own pins, and a torch without CUDA where its index can be reached."""
    forget_interrupted()
    files = [REQUIREMENTS / name for name in FOR_LEROBOT]
    torch = [line for file in files for line in file.read_text().splitlines() if line.startswith("torch")]
    with suppress(SetUpError):  # else the machine's own index has one, perhaps with 5 GB of CUDA
        pip_install(ros, title, *TORCH_WITHOUT_CUDA, *torch)
    install_files(ros, title, [*FOR_LEROBOT, *pins(ros)])
    make_usable(ros, title)


def pins(ros: Ros) -> list[str]:
    """Return the requirements of ROS 2 as wheels; none where one is sourced."""
    return [] if ros.distribution else [PINS[WHEELS]]


def make_usable(ros: Ros, title: str) -> None:
    compile_packages(ros, title)
    if not ros.distribution:
        correct_wheel_paths()
    write_environment(ros)


def install_for_all(ros: Ros, title: str) -> None:
    forget_interrupted()
    install_files(ros, title, [*FOR_DEMO, *FOR_ALL], "-c", constraints())
    pip_install(ros, title, "--no-deps", "-r", REQUIREMENTS / "metaworld.txt")  # pins another MuJoCo
    compile_packages(ros, title)


def compile_packages(ros: Ros, title: str) -> None:
    run([VENV_PYTHON, "-c", COMPILE, SITE_PACKAGES], child_environment(ros), title)


def forget_interrupted() -> None:
    """Remove the metadata of interrupted packages, so that pip installs these again."""
    for info in SITE_PACKAGES.glob("*.dist-info"):
        if not (info / "RECORD").is_file():  # pip writes it last
            shutil.rmtree(info)


def install_files(ros: Ros, title: str, names: Iterable[str], *options: str | Path) -> None:
    files = [word for name in names for word in ("-r", str(REQUIREMENTS / name))]
    pip_install(ros, title, *options, *files)


def constraints() -> Path:
    """Return the file of constraints; those of ROS are for one distribution."""
    every = REQUIREMENTS / "constraints.txt"
    if WHEELS == JAZZY:
        return every
    others = BUILD / "constraints.txt"
    kept = (line for line in every.read_text().splitlines(keepends=True) if not line.startswith("ros-"))
    others.write_text("".join(kept))
    return others


def correct_wheel_paths() -> None:
    """Replace the paths of the machine that built the ROS wheels in their exported CMake files."""
    corrections = {
        rb"/opt/python/cp3\d+-cp3\d+/include/python3\.\d+": os.fsencode(sysconfig.get_path("include")),
        rb"/opt/python/cp3\d+-cp3\d+/lib/python3\.\d+/site-packages": os.fsencode(SITE_PACKAGES),
    }
    for path in (VENV / "share").rglob("*.cmake"):
        text = path.read_bytes()
        corrected = text
        for pattern, here in corrections.items():
            corrected = re.sub(pattern, here.replace(b"\\", b"\\\\"), corrected)
        if corrected != text:
            new = path.with_suffix(".new")
            new.write_bytes(corrected)
            new.replace(path)  # at once, so that an interruption leaves no half file


def write_environment(ros: Ros) -> None:
    """Let every start of .venv's Python find ROS 2 and adahi_msgs; see ros_environment.py."""
    needed = {name: list(entries) for name, entries in ros.paths.items()}
    own = {"AMENT_PREFIX_PATH": str(VENV), "CMAKE_PREFIX_PATH": str(VENV)}
    if ros.distribution:  # the wheels set theirs
        own["LD_LIBRARY_PATH"] = str(VENV / "lib")
    for name, entry in own.items():
        needed[name] = [entry, *needed.get(name, [])]
    module = SITE_PACKAGES / "_adahi_ros_environment.py"
    module.with_suffix(".json").write_text(json.dumps(needed, indent=1))
    shutil.copy(TOOLS / "ros_environment.py", module)
    module.with_suffix(".pth").write_text(f"import {module.stem}\n")


def has_messages(ros: Ros, package: Path) -> bool:
    """Return whether this ROS 2 has a package of the folder's name."""
    marker = Path("share", "ament_index", "resource_index", "packages", package.name)
    return any((Path(prefix) / marker).is_file() for prefix in ros.paths.get("AMENT_PREFIX_PATH", []))


def build_package(package: Path, ros: Ros, title: str) -> None:
    build = BUILD / package.name
    manifest = build / "install_manifest.txt"
    for line in manifest.read_text().splitlines() if manifest.is_file() else []:  # of an older build
        Path(line).unlink(missing_ok=True)
    shutil.rmtree(build, ignore_errors=True)
    prefixes = [VENV, *ros.paths.get("AMENT_PREFIX_PATH", []), *ros.paths.get("CMAKE_PREFIX_PATH", [])]
    options = {
        "BUILD_TESTING": "OFF",
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_INSTALL_PREFIX": VENV,
        "CMAKE_PREFIX_PATH": ";".join(map(str, prefixes)),
        "PYTHON_INSTALL_DIR": SITE_PACKAGES.relative_to(VENV),
        "Python3_EXECUTABLE": VENV_PYTHON,
    }
    defines = [f"-D{name}={value}" for name, value in options.items()]
    environment = child_environment(ros)
    # Ninja needs half of make's time. A sourced ROS 2 brings its own CMake, and not always Ninja.
    generator = ["-G", "Ninja"] if shutil.which("ninja", path=environment["PATH"]) else []
    run(["cmake", *generator, "-S", package, "-B", build, *defines], environment, title)
    run(["cmake", "--build", build, "--parallel", str(os.cpu_count() or 1)], environment, title)
    run(["cmake", "--install", build], environment, title)


def install_packages(ros: Ros, title: str) -> None:
    # With "compat" the package's folder is on the path. Else Python would take the folder above it, which has
    # the same name, for the package wherever this checkout is the current folder.
    options = ["--no-deps", "--no-build-isolation", "--config-settings", "editable_mode=compat"]
    pip_install(ros, title, *options, "-e", ROOT, "-e", LAB)


# All stages


@dataclass(frozen=True)
class Stage:
    title: str
    made_from: str  # hash; the stage is up to date while it is the stamped one
    work: Callable[[Ros, str], None]

    @property
    def name(self) -> str:
        return str(getattr(self.work, "__name__", self.title))


def digest(before: str, paths: Iterable[Path]) -> str:
    """Hash a string, and the names and contents of files."""
    state = hashlib.sha256(before.encode())
    for path in sorted(paths):
        state.update(f"\0{path.relative_to(ROOT)}\0{path.stat().st_size}\0".encode())
        state.update(path.read_bytes())
    return state.hexdigest()[:16]


def files_of(folders: Iterable[Path]) -> list[Path]:
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


def stages(ros: Ros, kind: str = "") -> list[Stage]:
    """Return the stages in order: all of them, or those of `DEMO` or `LEROBOT`."""
    place = "" if kind == LEROBOT else str(ROOT)  # that environment is of all checkouts
    base = digest(json.dumps([sys.executable, PYTHON, place, ros.distribution, ros.paths]), [PIP])
    wheels = [] if ros.distribution else [REQUIREMENTS / PINS[WHEELS]]
    for_demo = [REQUIREMENTS / name for name in FOR_DEMO]
    for_all = [REQUIREMENTS / name for name in (*FOR_ALL, "metaworld.txt")]
    pinned = [REQUIREMENTS / "constraints.txt", *TOOLS.glob("*.py")]
    packaging = [ROOT / name for name in ("package.xml", "pyproject.toml", "setup.cfg", "setup.py")]
    packaging += [LAB / name for name in ("package.xml", "setup.cfg", "setup.py")]
    packaging += sorted(LAB.glob("adahi_lab/papers/*/entry_points.ini"))  # which setup.py reads
    origin = f"ROS 2 {ros.distribution} is sourced" if ros.distribution else "ROS 2 as wheels"

    def messages(package: Path) -> Stage:
        return Stage(
            package.name, digest(base, [*files_of([package]), *wheels]), partial(build_package, package)
        )

    empty = Stage(f"virtual environment, {PYTHON}", base, make_venv)
    if kind == LEROBOT:
        listed = digest(base, [*(REQUIREMENTS / name for name in FOR_LEROBOT), *wheels])
        packages = Stage(f"LeRobot, minutes and gigabytes, {origin}", listed, install_for_lerobot)
        here = Stage(f"adahi_ros, adahi_lab of {ROOT}", digest(base + str(ROOT), packaging), install_packages)
        return [empty, packages, messages(MESSAGES), here]
    every = [
        empty,
        Stage(
            f"packages of the demo, {origin}", digest(base, [*pinned, *for_demo, *wheels]), install_for_demo
        ),
        messages(MESSAGES),
        Stage("adahi_ros, adahi_lab", digest(base, packaging), install_packages),
    ]
    if kind == DEMO:
        return every
    every.append(
        Stage("torch, MuJoCo, test tools", digest(base, [*pinned, *for_demo, *for_all]), install_for_all)
    )
    every += [messages(package) for package in FOR_TESTS if not has_messages(ros, package)]
    return every


def write_stamps(ros: Ros, stamps: dict[str, str]) -> None:
    new = STAMPS.with_suffix(".new")
    new.write_text(json.dumps({"ros": asdict(ros), "stamps": stamps}))
    new.replace(STAMPS)


def set_up(kind: str) -> None:
    """Run the stages of a kind that are not current.

    Raises:
        SetUpError: something is missing on this machine, or a stage failed.
    """
    if WHEELS not in PINS:
        raise SetUpError(f"ROS: {WHEELS!r}, must be one of {', '.join(PINS)}")
    if VENV.exists() and not STAMPS.is_file():
        raise SetUpError(
            f"{VENV.name} was not made by this set-up. Move it away (mv {VENV.name} {VENV.name}.old), "
            "and start again"
        )
    state = json.loads(STAMPS.read_text()) if STAMPS.is_file() else {}
    ros = ros_to_use(Ros(**state.get("ros", {})))
    stamps: dict[str, str] = state.get("stamps", {})
    every = stages(ros, kind)
    if stamps.get(every[0].name) != every[0].made_from:
        stamps = {}  # a new .venv starts empty
    due = [stage for stage in every if stamps.get(stage.name) != stage.made_from]
    if not due:
        return
    missing = missing_from_machine(wheels=ros == Ros())
    if missing:
        raise SetUpError("\nerror: ".join(f"missing: {line}" for line in missing))
    LOG.write_text("")
    for number, stage in enumerate(due, start=1):
        title = f"[{number}/{len(due)}] {stage.title}"
        started = time.monotonic()
        print(f"{title} ...", end="", flush=True)
        if stamps.pop(stage.name, None):
            write_stamps(ros, stamps)
        try:
            stage.work(ros, title)
        except BaseException:
            print()
            raise
        stamps[stage.name] = stage.made_from
        write_stamps(ros, stamps)
        clear = "\r\033[K" + title + " ..." if sys.stdout.isatty() else ""
        print(f"{clear} {time.monotonic() - started:.0f} s", flush=True)


def main() -> int:
    if sys.argv[1:] not in ([], [DEMO], [LEROBOT]):
        print(f"error: {' '.join(sys.argv[1:])}: must be nothing, {DEMO} or {LEROBOT}", file=sys.stderr)
        return 2
    if Path(sys.prefix).resolve() == VENV.resolve():
        print("error: run tools/set_up; .venv's own Python would delete itself", file=sys.stderr)
        return 2
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:  # one at a time: `make demo` beside `make test`
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another set-up of .venv to end", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            set_up("".join(sys.argv[1:]))
        except SetUpError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("interrupted; the next run continues from here", file=sys.stderr)
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
