# SPDX-License-Identifier: Apache-2.0
"""PipeInfer (arXiv 2407.11798) and DSI (arXiv 2405.14105): speculation in runs of tokens."""
