# SPDX-License-Identifier: Apache-2.0
"""Shows what was measured: tables, pictures, the report."""
