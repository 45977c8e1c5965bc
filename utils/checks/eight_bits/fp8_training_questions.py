"""What `eight_bits/fp8_training` asks: its predictions, and the answers that people give to its exercises."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

WHICH_CURVE = Choice(
    "eight_bits/fp8_training/predict-which-curve",
    "One of A, C and D multiplies in bfloat16. Which?",
    (
        Option("A", "Its name stands below, and it is not bfloat16. But how did you tell it from the other two?"),
        Option("C", "It is C, and you had one chance in three. Would you have told it from another seed's figure?"),
        Option("D", "It is not: the names stand below. Had you had to bet on which of the three is best?"),
        Option(
            "The figure cannot say",
            "They lie closer together than one batch lies to the next. That is what everyone shows, and it is no"
            " evidence yet: neither of a difference nor of none.",
            right=True,
        ),
    ),
    predict=True,
)
OTHER_NETWORK = Choice(
    "eight_bits/fp8_training/predict-other-network",
    "The same recipes now train a DistilBERT. What becomes of the two without scales?",
    (
        Option("Both fail again", "One of them is as good as the others here. A failure is of a recipe and a task."),
        Option("Both train", "One of them never leaves its first loss: nearly every gradient is too small for E4M3."),
        Option(
            "E5M2 gradients train, E4M3 gradients fail",
            "E5M2 reaches 128 times lower. Here that is enough; for the LLaMA it was not.",
            right=True,
        ),
        Option(
            "E4M3 gradients train, E5M2 gradients fail",
            "E4M3 has one significand bit more. What is missing here is range, and E5M2 has more of that.",
        ),
    ),
    predict=True,
)
TWICE_THE_PEAK = Choice(
    "eight_bits/fp8_training/predict-speed",
    "A linear layer of 1,024 tokens, 2,048 inputs and 1,024 outputs on an H100, whose peak in FP8 is twice that in"
    " bfloat16. How fast is its training step in FP8, scales from the tensors at hand, against bfloat16?",
    (
        Option("2 times as fast", "Of the products alone, the roofline allows that. Something has to make the FP8."),
        Option("about 1.4 times as fast", "That was measured too, for a layer 256 times as large."),
        Option(
            "slower",
            "The tensors of a step are read, cast and written again; at this size that costs more than it saves.",
            right=True,
        ),
    ),
    predict=True,
)

# --- Exercises --------------------------------------------------------------------------------------------------------

SEEDS = Number(
    "eight_bits/fp8_training/seeds",
    "How many pairs of runs does the formula ask for?",
    answer="32",
    says="(2.8 * 0.5 / 0.25)**2 = 31.4, rounded up. With Student's t in place of the normal z it is 34.",
    wrong={
        "31": "31.4 pairs are needed, so 31 are not enough. Round up.",
        "31.36": "Right, and a part of a run does not exist: round up.",
        "34": "That is what Student's t asks for, since the spread is measured in the same runs. The formula takes the"
        " spread as known.",
        "6": "That is 2.8 * 0.5 / 0.25. It has to be squared.",
        "16": "That is with 1.96 alone: then the difference is seen in one experiment of two. Add 0.84.",
        "63": "That is the number for two groups without pairs. The spread given is that of the differences already.",
        "8": "That is for a spread of 0.25. The spread is twice the difference here.",
        "2": "You have the fraction upside down: more spread needs more runs.",
    },
    otherwise="Put the numbers in: z's that add up to 2.8, the spread 0.5, the difference 0.25. Then square.",
    hints=("((1.96 + 0.84) * spread / difference)**2",),
    unit="pairs",
)
BREAK_EVEN = Number(
    "eight_bits/fp8_training/break-even",
    "From which width n on can it pay?",
    answer="874",
    says="16/3 of the ridge, 163.9 operations per byte. A layer of 768 stays in 16 bits on this card, by the model.",
    wrong={
        "437": "That is for scales that are known beforehand: the amax readings are missing from the 22 bytes.",
        "1202": "bfloat16 casts its weight too, 6 bytes for each. The difference counts: 22 - 6.",
        "2622": "That is with the forward product alone. A step has three products of 2 n**3 operations.",
        "1748": "A multiply-add counts as two operations: 2 n**3 for a product, 6 n**3 for a step.",
        "164": "That is the ridge, operations per byte. Multiply by the bytes that the casts cost.",
    },
    otherwise="Saved: 6 n**3 operations at the two peaks. Spent: (22 - 6) n**2 bytes at the bandwidth. Set them equal.",
    hints=("One n**2 cancels. 6 n / 165.2e12 - 6 n / 330.3e12 = 16 / 1008e9.",),
    tolerance=0.012,
)
RULE_OUT = Task(
    "eight_bits/fp8_training/rule-out",
    "Write `rules_out(by_seed, bound)`: True where the differences show that two recipes differ by less than `bound`.",
)
EXCLUDE = Task(
    "eight_bits/fp8_training/exclude",
    "Write `excluded(blocks)`: what `convert` has to leave, so that the head, the first and the last block stay wide.",
)

PAPER, WHOLE, EQUAL = "bytes, as the paper counts", "bytes, with all that is stored", "percent faster at batch 2"
FP8_LM = {
    PAPER: Number(
        "eight_bits/fp8_training/fp8-lm",
        f"{PAPER}:",
        answer="6",
        says="2 + 1 + 1 + 2: master, gradient and the two moments.",
        wrong={
            "9": "That is all that is stored. The paper leaves out FP8 weights and accumulated gradients.",
            "7": "The weights that compute are not in the paper's count.",
            "8": "The accumulated gradients are not in the paper's count.",
            "4": "A 16-bit number has two bytes: the master and the second moment are of 16 bits.",
            "16": "That is Adam in float32: master, gradient and two moments of 4 bytes.",
        },
        otherwise="Four tensors: master 16 bits, gradient 8, first moment 8, second moment 16.",
        unit="bytes",
    ),
    WHOLE: Number(
        "eight_bits/fp8_training/fp8-lm-whole",
        f"{WHOLE}:",
        answer="9",
        says="One byte of FP8 weights and two of accumulated gradients on top.",
        wrong={
            "6": "That is the paper's count. What multiplies, and where do gradients add up?",
            "7": "The weights are in. Accumulated gradients take two bytes more.",
            "8": "The accumulated gradients are in. The FP8 weights take one byte more.",
            "10": "The weights that compute are of 8 bits: one byte.",
            "18": "That is the usual mixed precision with 16-bit copies.",
        },
        otherwise="The paper's six, the FP8 weights, and gradients added up in 16 bits.",
        unit="bytes",
    ),
    EQUAL: Number(
        "eight_bits/fp8_training/fp8-lm-equal",
        f"{EQUAL}:",
        answer="38.1",
        says="109.5 / 79.3. The other half of the +53 % is the larger batch, for which FP8-LM made room.",
        wrong={
            "53.2": "That is the claim: a batch of 4 against one of 2. Take the row with batch 2.",
            "40.9": "That is Transformer Engine's row. It multiplies in FP8 as well.",
            "-2": "That is FP8-LM against Transformer Engine. The claim is about BF16.",
            "27.6": "That is the share of the time that is saved. How much higher is the throughput?",
            "1.381": "Right as a factor. By how many percent is that faster?",
            "138.1": "138 % of the throughput: 38 % faster.",
            "11": "That is what the larger batch adds: 121.5 against 109.5.",
        },
        otherwise="Two rows of the same micro-batch: BF16 and FP8-LM, both at 2. Divide the throughputs.",
        unit="%",
        tolerance=0.01,
    ),
}
