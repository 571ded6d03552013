# SPDX-License-Identifier: Apache-2.0
"""Flow policies: plans of many actions that hang together, made of noise by a few steps of a learnt flow."""
