"""Perplexities that others published for models whose weights, or weights and inputs, have few bits: each typed once.

    PERPLEXITY["lin2023awq", "Llama 2 7B"]["int4, GPTQ"]  # 5.69

Compare within a row only: other rows are other texts, tokens or programs.
"""

WIDE = "not rounded"  # what a row is compared with: 16 bits, in the last source 32

# (a key of book/references.bib, model): perplexity by what the weights are
PERPLEXITY: dict[tuple[str, str], dict[str, float]] = {
    # table 4, WikiText-2, groups of 128; GPTQ in the order of the columns, and with the strongest inputs first (GPTQ-R)
    ("lin2023awq", "LLaMA 7B"): {
        **{WIDE: 5.68, "int4": 5.96, "int4, GPTQ": 6.22, "int4, GPTQ reordered": 5.83, "int4, AWQ": 5.78},
    },
    ("lin2023awq", "Llama 2 7B"): {
        **{WIDE: 5.47, "int4": 5.73, "int4, GPTQ": 5.69, "int4, GPTQ reordered": 5.63, "int4, AWQ": 5.60},
    },
    ("lin2023awq", "Llama 2 13B"): {
        **{WIDE: 4.88, "int4": 4.98, "int4, GPTQ": 4.98, "int4, GPTQ reordered": 4.99, "int4, AWQ": 4.97},
    },
    ("lin2023awq", "Llama 2 70B"): {
        **{WIDE: 3.32, "int4": 3.46, "int4, GPTQ": 3.42, "int4, GPTQ reordered": 3.43, "int4, AWQ": 3.41},
    },
    # WikiText by lm_eval, groups of 64, int8 with a scale per row
    ("torchao_quantization_2024", "Llama 3 8B"): {WIDE: 7.441, "int8": 7.447, "int4": 8.316, "int4, GPTQ": 7.921},
    # table 1, C4, read in copies of it; int8 weights and inputs, a scale per row of each
    ("dettmers2022llmint8", "6.7B"): {WIDE: 13.30, "W8A8": 14.13, "LLM.int8()": 13.24},
    ("dettmers2022llmint8", "13B"): {WIDE: 12.45, "W8A8": 16.48, "LLM.int8()": 12.45},
}
