# SPDX-License-Identifier: Apache-2.0
"""DyQ-VLA (Zheng et al., arXiv 2603.07904): widths of activations that follow the motion."""
