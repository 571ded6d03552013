# SPDX-License-Identifier: Apache-2.0
"""Ways to ask a remote policy for every action, to compare ours with; each runs in processes of its own."""
