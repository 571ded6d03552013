# SPDX-License-Identifier: Apache-2.0
"""Search for a recipe, a method and its threshold, by workers of which any may vanish at any time."""
