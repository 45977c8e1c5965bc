"""The capstone: plans for training a LLaMA on a small card, what they are predicted to take, and what they take."""
