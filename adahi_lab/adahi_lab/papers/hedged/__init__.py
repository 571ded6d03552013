# SPDX-License-Identifier: Apache-2.0
"""The table of hedged requests; the product has the method."""
