"""What `your_machine` asks, and the reply to each foreseen answer."""

from utils.checks.questions import Choice, Number, Option, Task, wrong_line
from utils.cost.cards import CARDS
from utils.runs.raschka2023 import BY_NAME

# --- Predictions ------------------------------------------------------------------------------------------------------

THREE_STEPS = Choice(
    "your_machine/predict-three-steps",
    "Widen both float16 matrices of the puzzle to float32, multiply them, and round the result to float16. On a "
    "processor that cannot multiply float16, how long does this take, compared with the float32 product alone?",
    (
        Option(
            "About half as long",
            "One of the three steps is the float32 product itself, with 32 bits per number. Nothing halves its time.",
        ),
        Option(
            "One to three times as long",
            "The casts touch each number once, 3n² in all, but the product takes 2n³ operations.",
            right=True,
        ),
        Option(
            "About six times as long",
            "The picture counts the instructions of eight products. How often is a widened number used in a whole "
            "matrix product?",
        ),
        Option(
            "Tens of times as long",
            "The table times torch's own float16 product. Which of these three calls multiplies float16?",
        ),
    ),
    predict=True,
)
FLOAT32_RUN, TF32_RUN, MIXED_RUN = (BY_NAME[name].minutes for name in ("float32", "TF32", "bf16-mixed"))
STEP_GAIN = Choice(
    "your_machine/predict-step-gain",
    f"On an A100, fine-tuning a DistilBERT took {FLOAT32_RUN:.0f} minutes in float32 and {TF32_RUN:.0f} minutes with "
    "TF32, whose products are 8 times as fast on the data sheet. For bfloat16, the data sheet promises 16 times. How "
    "long did it take with bfloat16 autocast?",
    (
        Option(
            "About 1 minute",
            f"That is {FLOAT32_RUN:.0f} / 16, as if the run were nothing but products. Then TF32 would have taken "
            f"{FLOAT32_RUN / 8:.1f} minutes.",
        ),
        Option(
            "About 4 minutes",
            f"That is half of {TF32_RUN:.0f}, as if all that TF32 left were products. How many minutes can those take?",
        ),
        Option(
            "About 7 minutes",
            f"The run took {MIXED_RUN} minutes, because most of what TF32 left is not products.",
            right=True,
        ),
    ),
    predict=True,
)
EXP = Choice(
    "your_machine/predict-exp",
    "On a CPU or CUDA GPU that multiplies bfloat16 natively, how does torch compute `exp` of a bfloat16 tensor?",
    (
        Option(
            "In bfloat16",
            "The native instruction only multiplies and adds. `exp` does not use it.",
        ),
        Option(
            "In float32, and rounds the result",
            "Each number is widened when it is read and rounded when it is written. Only the bytes are halved.",
            right=True,
        ),
        Option(
            "With a table of all 65,536 results",
            "Such a table would be small enough, but torch computes every exponential again.",
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

ROOM = Number(
    "your_machine/play-room",
    "Fine-tune LLaMA 7B on an A100. With 40 GB, the picker trains adapters. Type 80 into the memory field. How "
    "much memory does the plan take now?",
    answer="69.8",
    says="All weights are trained now, in bf16-mixed, with checkpointing and an 8-bit Adam.",
    tolerance=0.005,
    unit="GB",
    wrong={
        "27": "These are the weights alone. Look for the total.",
        "80": "That is the card's memory. How much of it does the plan take?",
        "72": "That is the nine tenths of the card that a plan may use. How much does this plan take?",
    },
    within={"15 to 16": "That is the plan for 40 GB, which trains adapters. Is the memory field set to 80?"},
    otherwise="Choose the A100, fine-tune and LLaMA 7B, then type 80 as the memory, and read the total.",
    hints=("The total is in the sentence that says whether the plan fits.",),
)
ALL_16 = Number(
    "your_machine/play-all-16",
    "Generate text with LLaMA 7B on a T4. With 16 GB, the picker stores the weights in 8 bits. What is the smallest "
    "whole number of GB with which it keeps them in 16 bits?",
    answer="17",
    says="Weights and cache take 14.6 GB, and the picker leaves a tenth of the memory free: 0.9 × 17 = 15.3.",
    unit="GB",
    wrong={
        "15": "Weights and cache do take 14.6 GB. But the picker leaves a tenth of the card free.",
        "16": "With 16 GB it still stores them in 8 bits: a tenth of the card stays free, and 14.4 GB is too little.",
        "18": "That is enough, but not the minimum. Try one less.",
        "14": "The weights alone take 13.5 GB. There is a cache too, and a tenth of the card stays free.",
        "32": "That is enough, but far above the minimum.",
    },
    otherwise="Choose the T4, generate and LLaMA 7B, then raise the memory from 16, one GB at a time.",
    hints=("Weights and cache must fit into nine tenths of the memory. With enough of it, read their total.",),
)
EMULATED_PICK = Number(
    "your_machine/play-emulated",
    "Choose the CPU without 16-bit products, and generate text with LLaMA 7B. What is the smallest whole number of GB "
    "with which the picker answers 32-true?",
    answer="33",
    says="In float32, weights and cache take 29.1 GB, and 0.9 × 33 = 29.7. With less memory it answers bf16-true "
    "although bfloat16 is emulated: that saves memory, and only a measurement shows what it costs in time.",
    unit="GB",
    wrong={
        "17": "From 17 GB on, the weights stay in 16 bits. But the recipe is still bf16-true.",
        "27": "The float32 weights do take 27 GB. There is a cache too, and a tenth of the memory stays free.",
        "29": "Weights and cache take 29.1 GB, so 29 GB would not hold them. And a tenth stays free.",
        "29.1": "That is what weights and cache take. But a tenth of the memory stays free.",
        "30": "Weights and cache take 29.1 GB. But the picker leaves a tenth of the memory free.",
        "32": "A tenth of 32 GB stays free, and the 28.8 GB that are left are too little for 29.1.",
        "32.3": "Right, but the question asks for whole GB.",
        "32.4": "That is 29.1 / 0.9, rounded up to a tenth. The memory field and the question have whole GB.",
        "34": "That is enough, but not the minimum. Try one less.",
        "64": "That is enough, but far above the minimum.",
    },
    otherwise="Choose the CPU without 16-bit products, generate and LLaMA 7B, then raise the memory until the recipe "
    "changes.",
    hints=("Begin at 24 GB. The recipe changes when float32 weights and cache fit.",),
)

# --- Exercises --------------------------------------------------------------------------------------------------------

TRUE_WEIGHTS = "With 16-bit weights small updates are rounded away. Keep float32 weights: that is what mixed means."
PICKS = {
    "A": Choice(
        "your_machine/recipe-of-6-1",
        "A, a GPU of compute capability (6, 1):",
        (
            Option(
                "16-mixed",
                "Tensor cores begin at 7.0. Without them, float16 products promise no gain, and the gradients would "
                "need a loss scaler.",
            ),
            Option("bf16-mixed", "It may run, but emulated: NVIDIA's GPUs multiply bfloat16 from capability 8.0 on."),
            Option("32-true", "It has no tensor cores, so no 16-bit format promises a faster step.", right=True),
            Option("16-true", f"Tensor cores begin at 7.0. {TRUE_WEIGHTS}"),
            Option("bf16-true", f"NVIDIA's GPUs multiply bfloat16 from capability 8.0 on. {TRUE_WEIGHTS}"),
        ),
    ),
    "B": Choice(
        "your_machine/recipe-of-8-9",
        "B, a GPU of compute capability (8, 9):",
        (
            Option(
                "16-mixed",
                "It works, but float16 ends at 65504. This GPU also multiplies a format with float32's range.",
            ),
            Option(
                "bf16-mixed", "It multiplies in 16 bits, keeps float32 weights, and has float32's range.", right=True
            ),
            Option("32-true", "It works, but leaves the tensor cores idle, at least without TF32."),
            Option("16-true", f"This GPU also multiplies a format with float32's range. {TRUE_WEIGHTS}"),
            Option("bf16-true", TRUE_WEIGHTS),
        ),
    ),
    "C": Choice(
        "your_machine/recipe-of-vnni",
        "C, a CPU that reports `avx2`, `avx512_vnni` and `f16c`:",
        (
            Option("16-mixed", "`f16c` converts float16 to float32 and back. It multiplies nothing."),
            Option("bf16-mixed", "`avx512_vnni` multiplies 8-bit and 16-bit integers. No flag here names bfloat16."),
            Option("32-true", "Of the formats you can train in, it multiplies only float32 and float64.", right=True),
            Option("16-true", f"`f16c` converts float16 to float32 and back. It multiplies nothing. {TRUE_WEIGHTS}"),
            Option("bf16-true", f"No flag here names bfloat16. {TRUE_WEIGHTS}"),
        ),
    ),
    "D": Choice(
        "your_machine/recipe-of-amx",
        "D, a CPU that reports `amx_bf16`, `amx_int8` and `f16c`:",
        (
            Option("16-mixed", "`amx_bf16` multiplies bfloat16. float16 would need `amx_fp16` or `avx512_fp16`."),
            Option(
                "bf16-mixed",
                "AMX multiplies blocks of bfloat16 and adds them up in float32. Time a step to see whether it gains.",
                right=True,
            ),
            Option("32-true", "One of the flags names a format that may be faster. That is what you time first."),
            Option("16-true", f"No flag here multiplies float16. {TRUE_WEIGHTS}"),
            Option("bf16-true", f"One of the flags does name bfloat16. {TRUE_WEIGHTS}"),
        ),
    ),
    "loss scaler": Choice(
        "your_machine/which-need-a-scaler",
        "Which of your four recipes need a loss scaler?",
        (
            Option("none", "float32 and bfloat16 hold gradients down to 1e-38 and below.", right=True),
            Option("A and C", "Both compute in float32, which needs no scaler: it holds gradients down to 1e-38."),
            Option("B and D", "Both compute in bfloat16, whose range is float32's: nothing to scale."),
            Option("all four", "A scaler is for float16, where gradients below 2**-25 become zero. Which ones use it?"),
        ),
    ),
}
PEAK = CARDS["A100"].boards[0].roof.peaks["bfloat16"]
LAUNCH = Number(
    "your_machine/rate-of-a-launch",
    "The rate of `x @ x` with n = 4096, if it took 0.009 ms",
    answer=str(2 * 4096**3 / 9e-6 / 1e12),
    says=f"About 15,300 TFLOP/s, but the data sheet promises {PEAK}. No product can have finished in 0.009 ms.",
    tolerance=0.01,
    unit="TFLOP/s",
    wrong={
        str(4096**3 / 9e-6 / 1e12): "That is half. Each of the n³ products of two numbers is followed by an addition.",
        str(2 * 4096**3 / 9e-3 / 1e12): "The time is in milliseconds: 0.009 ms is 9e-6 s.",
        str(2 * 4096**3 / 9e-9 / 1e12): "A thousand times too much: 0.009 ms is 9e-6 s.",
        str(2 * 4096**3 / 9e-6): "These are operations per second. A TFLOP is 10**12 of them.",
        str(2 * 4096**2 / 9e-6 / 1e12): "That counts 2n². There are n² results, and each takes 2n operations.",
        str(2 * 4096**3 / 9e-6 / 2**40): "A TFLOP is 10**12 operations, not 2**40.",
        str(PEAK): "That is the data sheet's rate. Compute the rate from the printed time.",
        str(
            2 * 4096**3 / 9e-6 / 1e12 / PEAK
        ): "That is how many times the data sheet's rate it would be. What is the rate?",
    },
    within={
        "14500 to 16000": "Close, but more than 1 % off: give at least three digits, without rounding in between.",
    },
    otherwise="Divide 2n³ operations by the time in seconds, then by 10**12.",
    hints=("2 × 4096³ is about 1.37e11 operations.", "0.009 ms is 9e-6 s."),
)
MISSING_WAIT = wrong_line(
    "your_machine/missing-wait",
    text="This code prints such an impossible rate. After which line is a second `torch.cuda.synchronize()` missing?",
    code="""x = torch.randn(4096, 4096, device="cuda").bfloat16()
torch.cuda.synchronize()
begin = time.perf_counter()
x @ x
seconds = time.perf_counter() - begin
print(2 * 4096**3 / seconds / 1e12, "TFLOP/s")""",
    line=4,
    says="This line only launches the product and returns. Wait before you read the clock. And repeat the measurement: "
    "the first call also loads the library and chooses a kernel.",
    replies={
        1: "The random numbers and the cast are launched here, and the next line already waits for them.",
        2: "This is the first one. It keeps the work of line 1 out of the measured time.",
        3: "Nothing has been launched since line 2, so there is nothing to wait for yet.",
        5: "Too late: this line has read the clock.",
        6: "Too late: the clock was read in the line above.",
    },
)
BFLOAT16_NATIVE = Task("your_machine/multiplies-bfloat16", "My `multiplies_bfloat16` is right for all twelve machines.")
VERDICT = Task("your_machine/verdict", "My `verdict` finds real differences, and rarely sees one between equal calls.")
