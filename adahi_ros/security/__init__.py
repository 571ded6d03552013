# SPDX-License-Identifier: Apache-2.0
"""Keys and permissions of SROS 2 for a server and its robots. See docs/how_to/secure.md."""
