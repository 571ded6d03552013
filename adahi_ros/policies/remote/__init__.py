# SPDX-License-Identifier: Apache-2.0
"""Large policies of others as targets, in this process or behind their servers, each kind by a YAML file."""
