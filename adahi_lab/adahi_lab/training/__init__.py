# SPDX-License-Identifier: Apache-2.0
"""Training: of policies, correctors, gates and encoders, from demonstrations, recordings and corrections."""
