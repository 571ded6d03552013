"""Proposes actions: the shared action tokenizer and the VQ-BeT policies on it.

Only `tokenizer`, `vqbet`, `training` and `torch_backend` need torch; a robot that runs exported
policies imports none of them.
"""
