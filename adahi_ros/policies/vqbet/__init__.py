# SPDX-License-Identifier: Apache-2.0
"""VQ-BeT: a tokenizer of actions, and transformers that predict its codes."""
