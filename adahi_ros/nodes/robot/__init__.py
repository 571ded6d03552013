# SPDX-License-Identifier: Apache-2.0
"""The robot's node: wiring between topics, the control loop and the services."""
