# SPDX-License-Identifier: Apache-2.0
"""A wireless link: what it is like, and an emulator of two hosts on this machine."""
