"""What is trained and generated with: texts, tokenizers, models, the two tasks, and the loops that write text."""
