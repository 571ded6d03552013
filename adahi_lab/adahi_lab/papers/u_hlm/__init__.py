# SPDX-License-Identifier: Apache-2.0
"""U-HLM (arXiv 2412.12687): requests where a draft, sampled again, differs."""
