# SPDX-License-Identifier: Apache-2.0
"""Other ways to query a remote policy for every action, for comparison; each runs in separate processes."""
