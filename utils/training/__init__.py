"""What trains a model in a recipe.

The recipes, the loop, optimizers, FP8 linear layers, batches, checkpoints, and what watches a run.
"""
