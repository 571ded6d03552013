# SPDX-License-Identifier: Apache-2.0
"""E2CL (Wang et al., arXiv 2409.03256): feedback and self-correction of a draft."""
