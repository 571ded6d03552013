# SPDX-License-Identifier: Apache-2.0
"""SpotTune: the cheapest machines that may vanish, for a search."""
