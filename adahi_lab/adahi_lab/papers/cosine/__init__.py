# SPDX-License-Identifier: Apache-2.0
"""CoSine (arXiv 2503.10325): several specialised drafts instead of one."""
