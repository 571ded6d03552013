# SPDX-License-Identifier: Apache-2.0
"""E2CL (Wang et al., arXiv 2409.03256): an agent that foresees feedback and corrects itself."""
