"""What `numbers/limits` asks: what people expect of overflow, underflow and NaN, and what is said to each."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

P_SILENT = Choice(
    "numbers/limits/predict-silent",
    "Some reviews have no answer in float16. What do most of those have in common?",
    (
        Option(
            "They are long",
            "They are, somewhat: a verdict adds words. But long reviews without one were read.",
        ),
        Option(
            "They are hard to read: irony, negations, rare words",
            "It is the other way round. Most of them say in so many words what their author thinks.",
        ),
        Option(
            "They end in a verdict, such as \u201ci want my money back\u201d",
            "Nearly all of them do. Something that the network does with plain words is too large for float16.",
            True,
        ),
        Option(
            "Nothing: float16 loses digits at random",
            "Rounding is the same every time, and it makes numbers a little wrong. It does not make NaN.",
        ),
    ),
    predict=True,
)
P_UNDER = Choice(
    "numbers/limits/predict-underflow",
    "The smallest positive float16 is 2**-24, about 6e-8. What does 1e-10 become in float16?",
    (
        Option(
            "2**-24, the smallest subnormal",
            "Rounding goes to the nearest number. Above 2**-25 that is the smallest subnormal; 1e-10 is far below.",
        ),
        Option(
            "0", "It lies below half of the smallest subnormal, so 0 is the nearest number. No NaN, no warning.", True
        ),
        Option(
            "2**-14, the smallest normal number",
            "2**-14 is where the hidden 1 ends. Subnormals fill the gap down to 2**-24, and below its half comes 0.",
        ),
        Option("NaN", "Underflow never makes a NaN. A NaN needs an operation without an answer, such as 0/0."),
    ),
    predict=True,
)
P_SOFTMAX = Choice(
    "numbers/limits/predict-softmax",
    "In float16, `e = exp(x)` and then `e / sum(e)`, for x = 12, 11, 10. What comes out?",
    (
        Option(
            "0.665, 0.245, 0.090",
            "The true answer, and float16 holds all three numbers. The way there leads through exp(12) = 162,755.",
        ),
        Option(
            "1, 0, 0",
            "exp(11) is more than a third of exp(12), so the truth is far from that. And exp(12) is not finite here.",
        ),
        Option(
            "NaN, 0, 0",
            "exp(12) is 162,755, beyond 65504: inf. So the sum is inf; inf/inf is NaN, and the others over inf are 0.",
            True,
        ),
        Option("inf, 0, 0", "The first exponential is inf, but so is the sum, and inf/inf has no answer: NaN."),
    ),
    predict=True,
)
P_MASK = Choice(
    "numbers/limits/predict-mask",
    "The attention of DistilBERT, in float16: -1e9 is added to the score of every padding token. Some rows of the "
    "batch have padding, and one only fills the batch up: it is all padding. Which rows come out as NaN?",
    (
        Option(
            "None",
            "-1e9 does not fit: it becomes -inf. That is harmless as long as each row keeps one finite score.",
        ),
        Option(
            "The one that is all padding",
            "-1e9 becomes -inf. Beside finite scores that gives the weight 0, as it should. "
            "In a row of nothing else the maximum is -inf too, and -inf - (-inf) is NaN.",
            True,
        ),
        Option(
            "All that have padding",
            "Their masked scores are -inf, and exp(-inf) is 0, as the mask wants. NaN needs a row with no score left.",
        ),
        Option(
            "All of them",
            "Adding -inf harms no other score. All would be NaN if a float16 mask of 0 and 1 were multiplied by it: "
            "0 * -inf is NaN.",
        ),
    ),
    predict=True,
)
P_E4M3 = Choice(
    "numbers/limits/predict-e4m3",
    "The largest E4M3 number is 448. What does a cast of 1000 to E4M3 give?",
    (
        Option("448", "One of the two modes. The other gives NaN, and some libraries do that."),
        Option("inf", "E4M3 has no infinity. Its codes are numbers, all but one of each sign, and that one is NaN."),
        Option("NaN", "One of the two modes. The other saturates to 448, and some libraries do that."),
        Option(
            "It depends on the library and its version",
            "The specification knows both: saturate to 448, or overflow to NaN. Libraries differ, and have changed.",
            True,
        ),
    ),
    predict=True,
)
P_VAR = Choice(
    "numbers/limits/predict-variance",
    "1,000 numbers between 198.4 and 201.8; their variance is 0.97. What is `(x * x).mean() - x.mean()**2` in float16?",
    (
        Option(
            "0.97", "Both terms are near 40,040, where float16 numbers are 32 apart. 0.97 is lost before the minus."
        ),
        Option(
            "0",
            "So it would be if only the two terms were rounded. The mean was rounded too, before it was squared.",
        ),
        Option(
            "-32",
            "The mean is stored as 200.125, a little too large, its square as 40064; the mean of the squares as 40032. "
            "Near 40,040 float16 numbers are 32 apart. A negative variance has no root: the next line is NaN.",
            True,
        ),
        Option("inf", "40,040 fits below 65504. For numbers near 300 both terms would be inf, and inf - inf is NaN."),
    ),
    predict=True,
)

# --- Play: tasks under the widget SoftmaxRow -------------------------------------------------------------------------

PLAY_SCORE = Number(
    "numbers/limits/play-score",
    "One score alone, in float16, softmax as the formula stands. What is the largest score with two decimals whose "
    "weight is still 1?",
    answer="11.08",
    says="exp(11.09) would still fit, but float16 stores 11.09 as 11.09375, and the exponential of that is 65759.",
    wrong={
        "11.09": "exp(11.09) is 65513, which would fit. But which number does float16 store for 11.09? Type it above.",
        "11.0859375": "That is the largest float16 number that works. With two decimals it is 11.09, which is "
        "stored as the next number up.",
        "11.090110718526951": "That is the logarithm of 65520. A score must also be stored, and have two decimals.",
        "65504": "That is the largest float16 number. The score is the one whose exponential comes near to it.",
        "65520": "From there on float16 rounds to inf. The score is the one whose exponential stays below it.",
    },
    within={
        "-65504 to 11.079": "Its weight is 1, but a larger score works too. Try one above.",
        "11.081 to 65503": "Its exponential is stored as inf, and inf / inf is NaN. Try a smaller score.",
    },
    otherwise="Keep one score in the widget and change it until its weight turns into NaN.",
    hints=(
        "The logarithm of 65520, where float16 begins to round to inf, is about 11.09.",
        "float16 numbers near 11 are 1/128 apart. Look at what is stored.",
    ),
    near=0,
)
PLAY_COPIES = Number(
    "numbers/limits/play-copies",
    "All scores of a float16 row are equal, and the largest is taken out first. How many scores can the row have "
    "before every weight becomes 0?",
    answer="65519",
    says="Each exponential is 1, so the sum is the number of scores. Up to 65519 it is rounded to 65504 or less. 65520 "
    "is rounded to inf, and 1 / inf is 0.",
    wrong={
        "65520": "65520 lies halfway between 65504 and 65536, and that tie is rounded to inf.",
        "65504": "That is the largest float16 number. A few more ones are still rounded down to it.",
        "65505": "65505 is rounded down to 65504, and so are a few more.",
        "65535": "Rounding to inf begins earlier, halfway between 65504 and 65536.",
        "65536": "65536 is 2**16, which float16 does not have. Rounding to inf begins earlier.",
        "2048": "There a running sum of ones would stop growing. Here the sum is rounded once, at its end.",
        "2": "That is for scores of 10 without the largest taken out. With it, each exponential is 1.",
        "inf": "Each exponential is 1, so the sum grows with the row, and float16 has an end.",
    },
    within={
        "1 to 65518": "With so many the weights are not 0 yet, and there is room for more.",
        "65521 to 1e9": "With so many the sum is inf. It becomes inf earlier.",
    },
    otherwise="Press “a long row” in the widget and change the number of copies.",
    hints=(
        "What is exp(0)? And the sum of n of them?",
        "Which whole numbers does float16 round to 65504, and which to inf?",
    ),
    near=0,
)
PLAY_MASK = Choice(
    "numbers/limits/play-mask",
    "In float16, every score of a row is padding, and two masks hide each of them, one after the other. The softmax "
    "takes the largest out first. Which way of masking keeps the row free of NaN?",
    (
        Option(
            "Both masks add -1e9",
            "float16 stores -1e9 as -inf. So the largest score is -inf as well, and -inf - (-inf) is NaN.",
        ),
        Option(
            "Both masks add the lowest number",
            "One mask may do. The second takes -65504 to -131008, which is stored as -inf, and then the largest score "
            "is -inf too.",
        ),
        Option(
            "Both masks put -inf in the place of the score",
            "That is exact as long as one score is finite. Here the largest is -inf, and -inf - (-inf) is NaN.",
        ),
        Option(
            "Both masks put the lowest number in the place of the score",
            "However often it is put there, the score is -65504. All differences are 0, and all weights are equal.",
            True,
        ),
    ),
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------

LARGEST_ROW = Number(
    "numbers/limits/largest-row",
    "All logits of a row are 10; float16 stores exp(10) as 22032. How many can there be before the sum is inf?",
    answer="2",
    says="22032 + 22032 = 44064; a third makes 66096, beyond 65520, so inf. 22032/inf is 0: every weight is 0.",
    wrong={
        "3": "65504/22032 is 2.97. Three make 66096, above 65520, where float16 begins to round to inf.",
        "2.97": "The right quotient. A row has a whole number of logits: which side of 2.97 still fits?",
        "65504": "That is the largest float16 number. How many times does 22032 fit into it?",
        "6550": "That adds up the logits. A softmax adds up their exponentials, 22032 each.",
        "11": "exp overflows above 11.09. Here every exponential is finite; their sum is what overflows.",
        "1": "22032 + 22032 = 44064 is still a float16 number.",
        "2048": "2048 is where adding ones stalls. Here each term is 22032, and the sum runs out of range first.",
        "inf": "Each term is finite, but every sum of a row is stored in float16, and float16 ends at 65504.",
    },
    otherwise="Add 22032 until the sum reaches 65520, where rounding to inf begins.",
    tolerance=0.002,  # for the quotient 2.97 in its other lengths
    hints=("A sum of 65520 or more is stored as inf.", "One term is 22032, two are 44064. And three?"),
)
CASTS = {
    "70000 to float16": Number(
        "numbers/limits/cast-70000",
        "70000 cast to float16",
        answer="inf",
        says="From 65520 on, halfway from 65504 to 65536, a cast to float16 gives inf.",
        wrong={
            "65520": "65520 is the border, not a float16 number. What lies at or beyond it does not go down any more.",
            "65504": "That would be saturation. A cast to float16 does not saturate: it overflows to inf.",
            "nan": "Overflow gives inf. A NaN comes later, for example from inf - inf.",
            "4464": "That wraps round, as integers do. Floating-point numbers never wrap.",
            "70016": "The grid of 64 would go on there, with one exponent more. Float16 has no such exponent.",
            "65536": "65536 is 2**16, and float16's largest power is 2**15.",
        },
        otherwise="The largest float16 number is 65504. What comes after it?",
    ),
    "65519 to float16": Number(
        "numbers/limits/cast-65519",
        "65519 cast to float16",
        answer="65504",
        says="65519 is nearer to 65504 than to 65536. From 65520, the middle, on it is inf.",
        wrong={
            "inf": "Overflow begins at 65520, halfway between 65504 and 65536. 65519 is below it and rounds down.",
            "65519": "Float16 numbers are 32 apart here: 65472, 65504.",
            "65520": "Float16 numbers are 32 apart here: 65472, 65504. 65520 is the middle of the last gap.",
            "65536": "65536 is 2**16, which float16 does not have. And 65519 is nearer to 65504.",
            "nan": "A cast of a number never gives NaN in float16.",
        },
        otherwise="Float16 numbers are 32 apart here, and the last is 65504.",
    ),
    "1e-8 to float16": Number(
        "numbers/limits/cast-1e-8",
        "1e-8 cast to float16",
        answer="0",
        says="The smallest subnormal is 2**-24 = 5.96e-8, and 1e-8 is below half of it. So an eps of 1e-8 is no eps.",
        wrong={
            "2^-24": "5.96e-8 is the smallest positive number. 1e-8 is below half of it, so 0 is nearer.",
            "2^-25": "2**-25 is half of the smallest positive number: a border, and not a float16 number.",
            "1e-8": "Float16 ends at 2**-24 = 5.96e-8. Nothing smaller is stored, except 0.",
            "2^-14": "That is the smallest normal number. Subnormals go on below it, down to 2**-24.",
            "nan": "Underflow never gives NaN.",
        },
        otherwise="The smallest positive float16 number is 2**-24 = 5.96e-8. Is 1e-8 nearer to it or to 0?",
    ),
    "3e-8 to float16": Number(
        "numbers/limits/cast-3e-8",
        "3e-8 cast to float16",
        answer="2^-24",
        says="3e-8 is a little above 2**-25 = 2.98e-8, the middle, and so it is rounded up: it doubles.",
        wrong={
            "0": "The middle between 0 and 2**-24 is 2**-25 = 2.98e-8. On which side of it is 3e-8?",
            "3e-8": "Below 2**-24 = 5.96e-8 float16 has nothing but 0.",
            "6e-8": "That is it, rounded. Write it exactly: 2**-24.",
            "2^-25": "2**-25 = 2.98e-8 is the middle, and 3e-8 lies above it.",
            "2^-14": "That is the smallest normal number. Subnormals go on below it, down to 2**-24.",
            "nan": "Underflow never gives NaN.",
        },
        otherwise="The two nearest float16 numbers are 0 and 2**-24.",
        tolerance=0.005,
    ),
    "1e39 to bfloat16": Number(
        "numbers/limits/cast-1e39",
        "1e39 cast to bfloat16",
        answer="inf",
        says="bfloat16 has the exponents of float32, so it ends near 3.4e38, as float32 does.",
        wrong={
            "3.39e38": "That is the largest bfloat16 number. A cast overflows to inf and does not saturate.",
            "3.4e38": "That is float32's end, nearly. A cast beyond the end overflows to inf and does not saturate.",
            "1e39": "bfloat16 has as many exponent bits as float32, and float32 ends at 3.4e38.",
            "65504": "That is float16's largest number. bfloat16 reaches 3.39e38.",
            "nan": "Overflow gives inf. A NaN comes later, for example from inf - inf.",
        },
        otherwise="bfloat16 has the exponents of float32. Where do those end?",
        tolerance=0.001,
    ),
    "57345 to E5M2": Number(
        "numbers/limits/cast-57345",
        "57345 cast to E5M2",
        answer="57344",
        says="57344 is the largest E5M2 number; only from 61440, the middle to 65536, on it would overflow.",
        wrong={
            "inf": "57345 is above the largest number, 57344, but nearer to it than to 65536. From 61440 on it is inf.",
            "57345": "E5M2 has two fraction bits: its numbers are 8192 apart here.",
            "61440": "61440 is the middle between 57344 and 65536, where overflow begins. It is not an E5M2 number.",
            "65536": "65536 is 2**16, and the largest exponent of E5M2, as of float16, is 15.",
            "448": "That is E4M3's largest number.",
            "65504": "That is float16's largest number. E5M2 has float16's exponents, but two fraction bits.",
            "nan": "E5M2 has infinities, so it overflows to them. And 57345 does not overflow yet.",
        },
        otherwise="The largest E5M2 number is 2**15 * 1.75 = 57344.",
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

SOFTMAX = Task(
    "numbers/limits/stable-softmax",
    "Write `softmax16`: a softmax along the rows of a float16 tensor, for any logits and for masked rows.",
)
MASK = Task(
    "numbers/limits/mask-value",
    "Write `mask_value`: for each dtype a finite number that masks a score and never makes inf or NaN.",
)
NORM = Task(
    "numbers/limits/safe-norm",
    "Write `norm16`: the Euclidean norm of a float16 vector, in float16, for entries from 1e-7 to 60000.",
)
LOSS = Task(
    "numbers/limits/cross-entropy",
    "Find the bug: mend a binary cross-entropy that gives NaN for right and confident answers in float16.",
)
SUM = Task(
    "numbers/limits/careful-sum",
    "Write `careful_sum`: add 1,000 float16 numbers with float16 additions only, and lose less than 0.2 %.",
)
