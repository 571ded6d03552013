# SPDX-License-Identifier: Apache-2.0
"""Flow policies: coherent plans of many actions, generated from noise by a few steps of a learned flow."""
