"""CoSine on a Ray: real drafters and a real verifier give the target's own chunks."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from adahi_lab.papers.cosine.serving import COSINE, Service, Way
from adahi_lab.papers.tokens.observed_chunks import by_robot, load_token_policy, observed_chunks
from adahi_lab.papers.tokens.texts import PolicyText, own_chunk
from adahi_ros.core.assets import asset

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: requirements/ray.txt"),
    pytest.mark.timeout(300),  # Ray takes its time to start
]
SERVICE = Service(drafters=2, draft_s=1e-3, draft_more_s=0.0, pass_s=1e-2, pass_more_s=0.0)


def test_each_chunk_is_the_targets_own_on_ray() -> None:
    from adahi_lab.papers.cosine.serving_ray import RayPlaces, ray_with

    folder = asset("checkpoints/metaworld/tokens")
    draft, target = (load_token_policy(folder / name) for name in ("draft", "target"))
    seen = [own[:2] for own in by_robot(observed_chunks("metaworld", draft, target, 3, 11), target)]
    own = [own_chunk(PolicyText(draft, target, *each)) for robot in seen for each in robot]
    with ray_with("", 3):
        places = RayPlaces([folder / "draft"] * 2, folder / "target", SERVICE)
        plain, cosine = (places.serve(seen, len(own[0]), way) for way in (Way(), COSINE))
    for made in (plain, cosine):
        assert made.chunks == own
        assert len(made.latencies_s) == len(own)
        assert 0.0 < made.idle_s < made.time_s
        assert 0 < made.accepted < made.drafted
