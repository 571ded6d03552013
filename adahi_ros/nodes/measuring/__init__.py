# SPDX-License-Identifier: Apache-2.0
"""Programs at the ends of a link whose calls are measured."""
