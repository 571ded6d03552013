# SPDX-License-Identifier: Apache-2.0
"""What nodes of several trades share."""
