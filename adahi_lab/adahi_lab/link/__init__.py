# SPDX-License-Identifier: Apache-2.0
"""A wireless link: its profile, and an emulator of two hosts on this machine."""
