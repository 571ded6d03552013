# SPDX-License-Identifier: Apache-2.0
"""The verbs of the command `adahi`: `app` joins them, one file per kind of job."""
