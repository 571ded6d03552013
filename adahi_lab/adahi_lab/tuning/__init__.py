# SPDX-License-Identifier: Apache-2.0
"""Search for a recipe, a method and its threshold, by workers that may vanish at any time."""
