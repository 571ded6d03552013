"""What is left of a verifier that was cleaned up."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

from rclpy.parameter import Parameter

from adahi_ros.nodes.launching.domain import exclusive_domain
from adahi_ros.nodes.launching.observer import Observer
from adahi_ros.nodes.server.target_verifier_node import TargetVerifierNode


def test_a_verifier_that_is_cleaned_up_keeps_no_policy(exported: Path) -> None:
    """The next one that it is configured with must find its memory free."""
    with exclusive_domain() as domain:
        observer = Observer(domain, "watcher")
        checkpoint = Parameter("checkpoint", value=str(exported / "target"))
        node = TargetVerifierNode(
            context=observer.context,
            use_global_arguments=False,
            parameter_overrides=[checkpoint, Parameter("autostart", value=False)],
        )
        node.trigger_configure()
        kept = weakref.ref(node._service)
        node.trigger_activate()
        node.trigger_deactivate()
        node.trigger_cleanup()
        gc.unfreeze()
        gc.collect()
        assert kept() is None
        node.destroy_node()
        observer.close()
