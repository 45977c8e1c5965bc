"""Numbers that others have published, each typed once, with its source: the book compares its own with them.

    number("te-h200, bfloat16, ms")  # 32.014
    PUBLISHED["te-h200, bfloat16, ms"].source, .place  # a key of book/references.bib, and where it stands there

Numbers of other modules are not repeated: `raschka2023` has the DistilBERT benchmark, `roofline` the data sheets,
`fp8_casts` torchao's layers, `bytes_per_parameter` the counts of bytes, and the widget TokensPerSecond the rates of
LLaMA 7B. The last word of a name is the unit: min, GB (1e9 bytes), % of the test data that is right, ms, s, tok/s,
TFLOP/s, x (times as fast).
"""

import math
from typing import NamedTuple


class PublishedNumber(NamedTuple):
    """A number, the key of its source in book/references.bib, and where it stands in that source."""

    value: float
    source: str
    place: str


def find_number(name: str) -> float:
    """Return a number of `PUBLISHED` by its name. Raises: KeyError for an unknown one."""
    return PUBLISHED[name].value


def _from_place(source: str, place: str, **rows: dict[str, float]) -> dict[str, PublishedNumber]:
    """Return the numbers of one place in a source: `rows` are what was measured, by the beginning of its name."""
    return {
        f"{prefix.replace('_', '-')}, {name}": PublishedNumber(value, source, place)
        for prefix, numbers in rows.items()
        for name, value in numbers.items()
    }


PUBLISHED: dict[str, PublishedNumber] = {
    # DistilBERT, what the charts leave out; an A100
    **_from_place(
        "raschka2023scripts",
        "logs",
        distilbert={
            **{"32-true, train %": 97.28, "32-true, validation %": 89.88},
            **{"32-true-high, train %": 97.41, "32-true-high, validation %": 92.75},
            **{"16-mixed, train %": 97.39, "16-mixed, validation %": 92.21, "bf16-mixed, validation %": 92.97},
            **{"bf16-true, train %": 96.55, "bf16-true, validation %": 92.59},
            **{"16-mixed, high, min": 7.10, "16-mixed, medium, min": 7.07},
            **{"bf16-mixed, high, min": 7.43, "bf16-mixed, medium, min": 7.44},
        },
    ),
    # Vision transformers, a GPT-2; an A100
    **_from_place(
        "raschka2023memory",
        "logs, ViT-L/16, batch 64, 1 epoch",
        vit_l={
            **{"32-true, min": 17.88, "32-true, GB": 26.84, "32-true, %": 96.06},
            **{"16-mixed, min": 3.45, "16-mixed, GB": 18.21, "16-mixed, %": 95.71},
            **{"bf16-true, min": 2.88, "bf16-true, GB": 13.82, "bf16-true, %": 96.92},
        },
    ),
    **_from_place(
        "raschka2023cvpr",
        "logs.md, 03 and 04, ViT-B/16, batch 16, 3 epochs",
        vit_b={
            **{"32-true, min": 18.49, "32-true, GB": 3.71, "32-true, %": 95.78},
            **{"bf16-mixed, min": 6.36, "bf16-mixed, GB": 3.04, "bf16-mixed, %": 95.24},
        },
    ),
    **_from_place(
        "raschka2024scratch",
        "ch05/10_llm-training-speed, README",
        gpt2={
            **{"float32, tok/s": 12_526, "TF32, tok/s": 27_648, "fused AdamW, tok/s": 28_399},
            **{"bfloat16, tok/s": 45_486, "FlashAttention, tok/s": 91_901, "all, tok/s": 142_156},
            **{"TF32, GB": 26.2422, "bfloat16, GB": 13.7871},
        },
    ),
    # Writing text
    **_from_place("raschka2023mixed", "the article", lit_llama={"bfloat16, GB": 13.52, "float32, GB": 27.02}),
    **_from_place("litllama2023", "README", lit_llama={"int4, GB": 5}),
    **_from_place(
        "gptfast2023",
        "README, A100 of 80 GB at 330 W",
        gpt_fast={
            **{"LLaMA 7B, bfloat16, GB/s": 1397, "LLaMA 7B, int8, GB/s": 1069, "LLaMA 7B, int4, GB/s": 863},
            **{"Llama 3 8B, bfloat16, tok/s": 93.89, "Llama 3 8B, int8, tok/s": 137.64},
            **{"Llama 3 8B, bfloat16, GB/s": 1411, "Llama 3 8B, int8, GB/s": 1031},
        },
    ),
    **_from_place(
        "te_gemma",
        "batch 64",
        gemma={"transformers, s": 46.6, "Transformer Engine, s": 12.25, "with CUDA graphs, s": 6.39},
    ),
    # FP8
    **_from_place(
        "te_gemm_profiling",
        "Worked Example: 5B Model on H200; an H200 NVL",
        te_h200={
            **{"bfloat16, ms": 32.014, "current, ms": 20.285, "delayed, ms": 18.978, "block, ms": 22.882},
            **{"bfloat16, handed over, ms": 31.968, "current, handed over, ms": 16.785},
        },
    ),
    **_from_place(
        "te_gemm_profiling",
        "Worked Example: 5B Model on B300",
        te_b300={
            **{"bfloat16, ms": 12.758, "current, ms": 9.147, "delayed, ms": 7.802},
            **{"MXFP8, ms": 8.984, "NVFP4, ms": 6.453},
            **{"bfloat16, handed over, ms": 13.102, "MXFP8, handed over, ms": 7.161, "NVFP4, handed over, ms": 3.764},
            **{"bfloat16, 4096 x 4096, ms": 0.307, "MXFP8, 4096 x 4096, ms": 0.269, "NVFP4, 4096 x 4096, ms": 0.256},
        },
    ),
    **_from_place(
        "te_getting_started",
        "getting_started_pytorch_summary.csv, commit 802c747",
        te_layer={
            **{"torch, ms": 48.51, "its attention, ms": 35.78, "its attention and FP8, ms": 23.46},
            "its whole layer and FP8, ms": 21.84,
        },
    ),
    **_from_place(
        "te_llama",
        "a step, batch 8",
        te_llama={"transformers, ms": 248, "Transformer Engine, ms": 185, "Transformer Engine and FP8, ms": 160},
    ),
    **_from_place(
        "torchao_float8",
        "Llama3-8B on 8 H100",
        torchao_h100={
            **{"bfloat16, tok/s": 6150, "tensorwise, tok/s": 7689.5, "rowwise, tok/s": 6768},
            **{"bfloat16, GB": 47.65, "tensorwise, GB": 47.77},
        },
    ),
    **_from_place(
        "torchao_training",
        "Llama3-8B on B200",
        torchao_b200={"tensorwise, %": 25.4, "MXFP8, %": 20.0, "MXFP8 RCEIL, %": 16.1, "rowwise, %": 4.0},
    ),
    **_from_place(
        "feng2024allgather",
        "TL;DR, 128 H100",
        llama3_70b={"tensorwise and all-gather, x": 1.5, "of the gain by the all-gather, %": 20},
    ),
    **_from_place(
        "peng2023fp8lm",
        "second version, table 5",
        gpt_175b={
            **{"BF16, GB": 66.1, "BF16, samples/s": 22.4, "BF16, TFLOP/s": 386, "BF16, MFU %": 39.0},
            **{"TE, GB": 69.6, "TE, samples/s": 28.7, "TE, TFLOP/s": 493, "TE, MFU %": 24.9},
            **{"FP8-LM, batch 1, GB": 40.3, "FP8-LM, batch 1, samples/s": 27.1, "FP8-LM, batch 1, TFLOP/s": 473},
            **{"FP8-LM, batch 4, GB": 57.7, "FP8-LM, batch 4, samples/s": 39.3, "FP8-LM, batch 4, TFLOP/s": 677},
            "FP8-LM, batch 4, MFU %": 34.2,
        },
        gpt_13b={
            **{"BF16, samples/s": 79.3, "TE, samples/s": 111.7, "BF16, GB": 68.2, "TE, GB": 76.4},
            **{"FP8-LM, batch 2, samples/s": 109.5, "FP8-LM, batch 4, samples/s": 121.5},
        },
    ),
    **_from_place(
        "peng2023fp8lm",
        "second version, zero-shot average",
        gpt_7b={"BF16, %": 58.4, "FP8-LM, %": 58.0},
        gpt_13b={"BF16, %": 61.0, "FP8-LM, %": 60.4},
    ),
    **_from_place("peng2023fp8lm", "abstract, first version", fp8_lm_v1={"faster, %": 64, "less memory, %": 42}),
    **_from_place("peng2023fp8lm", "abstract, second version", fp8_lm_v2={"faster, %": 75, "less memory, %": 39}),
    # Float32 products on bfloat16 units
    **_from_place(
        "pytorch195301",
        "description: one GB200, geometric means",
        gb200={
            **{"BF16x9 to float32, x": 2.135, "BF16x9 to float32 at most, x": 2.881},
            "BF16x9 to float32 in a cache at least, x": 0.866,
        },
    ),
    # Attention in four bits
    **_from_place(
        "zhang2025sageattention3",
        "abstract",
        rtx_5090={"FP4 attention, TFLOP/s": 1038, "FP4 attention, x": 5},
    ),
    # Many GPUs
    **_from_place(
        "pytorch106395",
        "the description; a model of 1 and of 7 billion parameters",
        fsdp={"stable, GPUs": 12 * 8, "unstable, GPUs": 48 * 8},
    ),
    **_from_place(
        "megatron3067",
        "Llama 70B, iteration 100",
        megatron_fsdp={
            **{"float32, ms": 3300.5, "bfloat16 and float32 sums, ms": 2559.1},
            **{"float32, loss": 2.233609, "bfloat16 and float32 sums, loss": 2.234128},
        },
    ),
    **_from_place("trtllm16753", "the description", gpt_oss_120b={"GPQA, points": 5}),
    # Loss scaling
    **_from_place(
        "nvidia2023mixed",
        "section 3.1, figures 1 and 2",
        ssd_guide={"zero in float32, %": 66.8, "become zero in float16, %": 31, "not zero in float16, %": 5.3},
    ),
    **_from_place(
        "micikevicius2018mixed",
        "section 3.2, figure 3",
        ssd={"zero in float32, %": 67, "scale": 8, "irrelevant below, exponent": -27},
    ),
    **_from_place(
        "micikevicius2018mixed",
        "section 3.1",
        update={"lost at weight over update": 2048},
        speech={"gradients below the exponent -24, %": 5},
    ),
    **_from_place(
        "micikevicius2018mixed",
        "table 1; read in copies of it",
        imagenet={
            **{"AlexNet, float32, %": 56.77, "AlexNet, mixed, %": 56.93},
            **{"VGG-D, float32, %": 65.40, "VGG-D, mixed, %": 65.43},
            **{"GoogLeNet, float32, %": 68.33, "GoogLeNet, mixed, %": 68.43},
            **{"Inception v2, float32, %": 70.03, "Inception v2, mixed, %": 70.02},
            **{"Inception v3, float32, %": 73.85, "Inception v3, mixed, %": 74.13},
            **{"ResNet-50, float32, %": 75.92, "ResNet-50, mixed, %": 76.04},
        },
    ),
    **_from_place(
        "micikevicius2018mixed",
        "table 2",
        detection={
            **{"Faster R-CNN, float32, mAP": 69.1, "Faster R-CNN, unscaled, mAP": 68.6},
            **{"Faster R-CNN, scaled, mAP": 69.7, "SSD, float32, mAP": 76.9, "SSD, scaled, mAP": 77.1},
        },
    ),
    # FP8 in hardware
    **_from_place(
        "deepseek2024v3",
        "section 3.3.2",
        h800={"bits of a total": 14, "largest error at K = 4096, %": 2, "products between promotions": 128},
    ),
    **_from_place(
        "ocp_ofp8_2023",
        "tables 1 and 2",
        E4M3={
            "bias": 7,
            "largest": 448,
            "exponent of the smallest normal": -6,
            "exponent of the smallest subnormal": -9,
        },
        E5M2={
            "bias": 15,
            "largest": 57344,
            "exponent of the smallest normal": -14,
            "exponent of the smallest subnormal": -16,
        },
    ),
    **_from_place("noune2022fp8", "table 1", E4M3FNUZ={"largest": 240}, E5M2FNUZ={"largest": 57344}),
    **_from_place(
        "ocp_mx_2023",
        "section 5",
        **{"E3M2": {"largest": 28}, "E2M3": {"largest": 7.5}, "E2M1": {"largest": 6}},
        MX={"values in a block": 32, "FP8, bits a value": 8.25, "FP6, bits a value": 6.25, "FP4, bits a value": 4.25},
    ),
    **_from_place("nvidia2025nvfp4", "section 2", NVFP4={"values in a block": 16, "bits a value": 4.5}),
}

# What was measured for this book before its code was written, with other code: a second opinion, no source.
EXPECTED = {
    "4,096 ones added in float16": 2048,
    "4,096 ones added in bfloat16": 256,
    "1 and a thousand times 0.001 in bfloat16, to nearest": 1.0,
    "the same, Kahan": 2.0,
    "the same, stochastic rounding, mean": 2.0002,
    "1 and a thousand times 0.0001 in float16": 1.0,
    "exp overflows in float16 above": 11.0899,
    "MX, exponent down: relative error": 0.0293,
    "a float32 scale for each block: relative error": 0.0240,
    "finite codes of E4M3": 254,
    "finite codes of E5M2": 248,
    "unit roundoff of E4M3": 0.0625,
    "unit roundoff of E5M2": 0.125,
    "softmax of 12, 11 and 10 in float16, stable, the first": 0.6655,
    "-1e9 in float16": -math.inf,
}
REFINEMENT = {  # n = 256: factors and condition; the error of the solution, None where not kept, and steps to it
    ("float32", 1e2): (5.5e-15, 2),
    ("float32", 1e4): (2.8e-13, 4),
    ("float32", 1e6): (2.5e-11, 5),
    ("float32", 1e9): (None, None),
    ("float16", 1e1): (None, 4),
    ("float16", 1e2): (None, 5),
}
OUTLIERS = {  # relative error of the other values of 128 x 1024 normal numbers, by the outlier; the arms of `outliers`
    "E4M3 tensor": (0.0265, 0.0265, 0.0264, 0.0265, 0.0396, 0.377),
    "E4M3 1x128": (0.0257, 0.0256, 0.0257, 0.0257, 0.0257, 0.0283),
    "INT8 tensor": (0.0104, 0.0679, 0.671, 1.0, 1.0, 1.0),
    "INT8 1x128": (0.0065, 0.0068, 0.0207, 0.0315, 0.0315, 0.0315),
    "E2M1 tensor": (0.128, 0.701, 1.0, 1.0, 1.0, 1.0),
    "E2M1 1x16": (0.095, 0.095, 0.095, 0.095, 0.095, 0.095),
}
OUTLIER_ZEROS = (0.0, 0.0, 0.001, 0.005, 0.053, 0.485)  # of "E4M3 tensor": the share of the others that becomes zero
