# SPDX-License-Identifier: Apache-2.0
"""HeiSD (arXiv 2603.17573): drafts from demonstrations where the tool moves far, accepted in blocks."""
