# SPDX-License-Identifier: Apache-2.0
"""LIBERO-Goal (Liu et al., NeurIPS 2023): one table, ten instructions.

The library is needed once, to convert its scene (`adahi lab libero convert`). Afterwards MuJoCo alone steps
the world. The hand's controller, the starts and the criteria are rewritten here; a test compares them with
the library.
"""
