# SPDX-License-Identifier: Apache-2.0
"""Claims and tables of published papers, compared with this package."""
