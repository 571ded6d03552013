# SPDX-License-Identifier: Apache-2.0
"""VLN-Cache (Zheng et al., arXiv 2603.07080): features of image patches that did not change are kept."""
