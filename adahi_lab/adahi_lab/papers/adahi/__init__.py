# SPDX-License-Identifier: Apache-2.0
"""Tables about ADAHI, the paper that this package began with; the product has the method."""
