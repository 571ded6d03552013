# SPDX-License-Identifier: Apache-2.0
"""The command `adahi`, as `python -m adahi_ros`."""

from adahi_ros.start import adahi

if __name__ == "__main__":
    adahi()
