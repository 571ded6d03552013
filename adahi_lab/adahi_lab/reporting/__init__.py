# SPDX-License-Identifier: Apache-2.0
"""Shows measurements: tables, pictures, the report."""
