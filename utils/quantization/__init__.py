"""Trained models in fewer bits.

Integers and their scales, GPTQ, LLM.int8(), weight-only layers, outliers, the KV cache.
"""
