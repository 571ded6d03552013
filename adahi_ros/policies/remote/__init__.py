# SPDX-License-Identifier: Apache-2.0
"""Large third-party policies as targets, in this process or behind their servers, each configured by YAML."""
