"""What `eight_bits/fp8_training` asks: its predictions, and the answers that people give to its exercises."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

LOSS_TIMES = Choice(
    "eight_bits/fp8_training/predict-loss-times",
    "The same run without a scale, but with the loss multiplied by 2¹⁴ in every step. What becomes of it?",
    (
        Option(
            "It stays where it was: two fraction bits are too few",
            "That is what it would do if precision were the trouble, because the factor is a power of two and changes"
            " no fraction bit of a normal number. But the run learned.",
        ),
        Option(
            "It becomes worse: large gradients now pass the end of E5M2",
            "They would have to pass it. But gradients here are small: on the text of the count below, the largest of"
            " the first step is 0.004, and 2¹⁴ times that is about 70.",
        ),
        Option(
            "It closes about half of the gap to bfloat16",
            "It closes more than that: with the factor, its loss and that of bfloat16 are within 1 % of each other.",
        ),
        Option(
            "It ends within 1 % of bfloat16's loss",
            "So the fraction bits sufficed. The factor changes only which gradients are too small for the format.",
            right=True,
        ),
    ),
    predict=True,
)
OTHER_NETWORK = Choice(
    "eight_bits/fp8_training/predict-other-network",
    "The same recipes train this DistilBERT. What becomes of `fp8-unscaled`, with its gradients in E5M2, and of"
    " `fp8-unscaled-e4m3`, with its gradients in E4M3? Neither has scales, or a factor on the loss.",
    (
        Option("Both fail again", "One of them is as good as the others. A failure belongs to a recipe and a task."),
        Option(
            "Both learn",
            "One of them guesses: half of its answers are right. The smallest number of E4M3 is 128 times as large as"
            " that of E5M2.",
        ),
        Option(
            "It learns with E5M2 gradients and fails with E4M3 gradients",
            "E5M2 reaches 128 times lower. For this network and its texts that is enough; for the LLaMA on Shakespeare"
            " it was not.",
            right=True,
        ),
        Option(
            "It learns with E4M3 gradients and fails with E5M2 gradients",
            "E4M3 has one fraction bit more. What these gradients need is range, and E5M2 has more of that.",
        ),
    ),
    predict=True,
)
SMALLEST_BOUND = Choice(
    "eight_bits/fp8_training/predict-smallest-bound",
    "With `fp8-current` the loss is 0.01 % higher on average, with a standard error of 0.26 % from five pairs. What is"
    " the smallest difference that these pairs rule out, when all seven recipes are compared?",
    (
        Option(
            "About 0.01 %",
            "That is the mean. The true difference may be a few standard errors away from it, on either side.",
        ),
        Option(
            "About 0.3 %",
            "That is one standard error. An interval that should rarely miss the truth is wider.",
        ),
        Option(
            "About 0.6 %",
            "That is right for this recipe alone, at 5 %. But seven are compared, and each gets a seventh of the 5 %.",
        ),
        Option(
            "About 1.1 %",
            "With four degrees of freedom and 5 % / 7, Student's t is about 4.2, and 4.2 standard errors are 1.1 %.",
            right=True,
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

PLAY_LENGTH = Number(
    "eight_bits/fp8_training/play-length",
    "LLaMA 7B, one text, `fp8-current`, H100 SXM. How long must the text be, in multiples of 64 tokens, before the"
    " plan is faster than bfloat16?",
    answer="576",
    says="With 512 tokens the casts still cost more. All weights are cast in every step, however few tokens there are.",
    wrong={
        "512": "Close. With 512 tokens the plan still takes a little longer than bfloat16. `gain` says that both take"
        " the same time, but it leaves out what the products read and write.",
        "640": "That is faster, but one multiple of 64 less is enough.",
        "1584": "That is the width of a square layer. These layers are 4,096 wide or more; only the tokens are few.",
        "384": "That is the answer for the H200, which has more bandwidth.",
        "64": "That is the answer for `fp8-delayed`, which reads each tensor once.",
    },
    within={
        "1 to 553": "There the plan takes longer than bfloat16. Try a longer text.",
        "554 to 575": "There the plan is a little faster already, but this is not a multiple of 64.",
        "577 to 131072": "That is faster, but a shorter text is enough.",
    },
    otherwise="Set Texts in a batch to 1 and change Tokens of a text until the line says times as fast.",
    unit="tokens",
    near=0,
)
PLAY_SLOWER = Number(
    "eight_bits/fp8_training/play-slower",
    "DistilBERT, 32 texts of 512 tokens, `fp8-current`, H100 SXM. A block has six linear layers. How many of the six"
    " are slower in FP8?",
    answer="4",
    says="The four of attention, 768 × 768. The two of the MLP, 768 and 3,072 wide, gain 1 %. That does not make up for"
    " it: the plan takes longer than bfloat16.",
    wrong={
        "6": "The two layers of the MLP gain a little. Look at the column of gains.",
        "0": "Look at the column of gains: a number below 1 means slower.",
        "2": "Those are the two that gain. How many do not?",
        "24": "That is in all six blocks. How many are slower in one?",
        "5": "Look at `lin1` and `lin2`: both gain a little.",
        "3": "Those of query, key and value. There is one more of their size.",
    },
    otherwise="Count the layers of a block, `q_lin` to `lin2`, whose gain is below 1.",
    near=0,
)

# --- Exercises --------------------------------------------------------------------------------------------------------

SEEDS = Number(
    "eight_bits/fp8_training/seeds",
    "How many pairs of runs does the formula ask for?",
    answer="32",
    says="(2.8 * 0.5 / 0.25)**2 = 31.4, rounded up. With Student's t in place of the normal z it is 34.",
    wrong={
        "31": "31.4 pairs are needed, so 31 are not enough. Round up.",
        "31.36": "Right, but there is no fraction of a pair: round up.",
        "34": "That is what Student's t asks for, because the spread is measured in the same runs. The formula takes"
        " the spread as known.",
        "6": "That is 2.8 * 0.5 / 0.25. It has to be squared.",
        "16": "That is with only 1.96: then the difference is seen in one experiment out of two. Add 0.84.",
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
    "Above which width n can it pay?",
    answer="874",
    says="16/3 of the ridge, 163.9 operations per byte. A layer of 768 stays in 16 bits on this card, by the model.",
    wrong={
        "437": "That is half of it. Either the readings for the maxima are missing from the 22 bytes, or all of the"
        " products' time is taken as saved. FP8 saves half.",
        "1202": "bfloat16 casts its weight too, 6 bytes for each. The difference counts: 22 - 6.",
        "2622": "That counts only the forward product. A step has three products of 2 n**3 operations.",
        "1748": "That is twice as much. Either a multiply-add is counted as one operation (a step has 6 n**3), or"
        " 3 n**3 is divided by the peak of FP8 instead of bfloat16's.",
        "164": "That is the ridge, operations per byte. Multiply by the bytes that the casts cost.",
    },
    otherwise="Saved: 6 n**3 operations at the two peaks. Spent: (22 - 6) n**2 bytes at the bandwidth. Set them equal.",
    hints=("One n**2 cancels. 6 n / 165.2e12 - 6 n / 330.3e12 = 16 / 1008e9.",),
    tolerance=0.012,
)
RULE_OUT = Task(
    "eight_bits/fp8_training/rule-out",
    "Write `rules_out(by_seed, lower, upper)`: True if the differences show that the true one is between the bounds.",
)
FILTER = Task(
    "eight_bits/fp8_training/filter",
    "Write `in_fp8(layer, name)`: True for the linear layers of this LLaMA that go to FP8.",
)

PAPER, WHOLE, EQUAL = "bytes, as the paper counts", "bytes, with all that is stored", "percent faster at batch 2"
FP8_LM = {
    PAPER: Number(
        "eight_bits/fp8_training/fp8-lm",
        f"{PAPER}:",
        answer="6",
        says="2 + 1 + 1 + 2: master, gradient and the two moments.",
        wrong={
            "9": "The paper counts four of the six tensors.",
            "7": "The weights in the products are not in the paper's count.",
            "8": "The accumulated gradients are not in the paper's count.",
            "4": "A 16-bit number has two bytes: the master and the second moment have 16 bits.",
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
            "6": "Two of the six tensors are missing. What multiplies, and where do gradients add up?",
            "7": "The weights are in. Accumulated gradients take two bytes more.",
            "8": "Either the FP8 weights are missing, or the accumulated gradients stand in place of the 8-bit ones."
            " All six tensors are stored.",
            "10": "The weights in the products have 8 bits: one byte.",
            "18": "That is the usual mixed precision with 16-bit copies.",
        },
        otherwise="The paper's four tensors, the FP8 weights, and gradients added up in 16 bits.",
        unit="bytes",
    ),
    EQUAL: Number(
        "eight_bits/fp8_training/fp8-lm-equal",
        f"{EQUAL}:",
        answer="38.1",
        says="109.5 / 79.3. The rest of the +53 % comes from the larger batch, for which FP8-LM made room.",
        wrong={
            "53.2": "That is the claim: a batch of 4 against one of 2. Take the row with batch 2.",
            "40.9": "That is Transformer Engine's row. It multiplies in FP8 as well.",
            "-2": "That is FP8-LM against Transformer Engine. The claim is about BF16.",
            "27.6": "That is the share of the time that is saved. How much higher is the throughput?",
            "1.381": "Right as a factor. By how many percent is that faster?",
            "0.381": "Right as a fraction. How many percent is that?",
            "138.1": "138 % of the throughput: 38 % faster.",
            "11": "That is what the larger batch adds: 121.5 against 109.5.",
        },
        otherwise="Two rows of the same micro-batch: BF16 and FP8-LM, both at 2. Divide the throughputs.",
        unit="%",
        tolerance=0.01,
    ),
}
