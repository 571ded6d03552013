"""VQ-BeT: a tokenizer of actions, and transformers that predict its codes."""
