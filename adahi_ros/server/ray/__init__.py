# SPDX-License-Identifier: Apache-2.0
"""The policies of a verifier on Ray Serve: the file of a fleet, replicas, and the verifier's end of them."""
