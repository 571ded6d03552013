# SPDX-License-Identifier: Apache-2.0
"""Third-party wires in front of the verifier's engine; a door is a file here."""
