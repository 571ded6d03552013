# SPDX-License-Identifier: Apache-2.0
"""Types and tools that all modules share."""
