"""Training on several processes: what travels between them in each way to split the work, and what that changes."""
