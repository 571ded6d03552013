# SPDX-License-Identifier: Apache-2.0
"""Claims and tables of published papers, held against this package."""
