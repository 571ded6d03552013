# SPDX-License-Identifier: Apache-2.0
"""What the target says to a proposal: acceptance rules."""
