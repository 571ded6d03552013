"""What those are told who have not installed Meta-World."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from adahi_lab.tasks import make, make_expert
from adahi_lab.tasks.metaworld_original import load_original
from adahi_lab.tasks.metaworld_world import load_library, load_scene


@pytest.mark.parametrize("made", [make, make_expert])
@pytest.mark.parametrize("name", ["metaworld", "metaworld_10"])
def test_without_the_library_it_says_how_to_get_it(
    name: str, made: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for load in (load_library, load_scene, load_original):
        load.cache_clear()
    for module in ("metaworld", "metaworld.env_dict"):
        monkeypatch.setitem(sys.modules, module, None)
    message = r"metaworld: must be installed .*pip install --no-deps -r requirements/metaworld\.txt"
    with pytest.raises(ValueError, match=message):
        made(name)
