# SPDX-License-Identifier: Apache-2.0
"""The verifier's side: knows no ROS, no clock and no thread."""
