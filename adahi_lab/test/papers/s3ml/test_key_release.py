"""`adahi serve keys` and `adahi serve fetch`: keys for what was measured and admitted."""

from __future__ import annotations

import pytest
import yaml
from test.papers.s3ml.conftest import NAME, World

from test.cli.conftest import Fails, Run


@pytest.mark.smoke
@pytest.mark.timeout(60)
def test_the_commands_give_keys_to_what_they_measured(url: str, world: World, run: Run, fails: Fails) -> None:
    platform = ["--platform", world.folder / "platform", "--name", NAME]
    printed = yaml.safe_load(run("serve", "fetch", "ball/target", *platform).output)
    out = ["--service", url, "--out", world.folder / "out"]
    assert "no keys: the key service refuses (403)" in fails("serve", "fetch", "ball/target", *platform, *out)
    world.admitted.write_text(yaml.safe_dump(printed))
    assert "ROS_SECURITY_KEYSTORE=" in run("serve", "fetch", "ball/target", *platform, *out).output
    assert (world.folder / "out/enclaves/adahi/server/key.pem").is_file()
    assert "has no keys of a server" in fails("serve", "keys", world.folder, "--admitted", world.admitted)
