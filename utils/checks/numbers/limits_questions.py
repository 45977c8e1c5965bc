"""The questions of `numbers/limits`: what people expect of overflow, underflow and NaN, with a reply to each."""

from utils.checks.questions import Choice, Number, Option, Task, wrong_line

# --- Predict, then run ------------------------------------------------------------------------------------------------

P_SILENT = Choice(
    "numbers/limits/predict-silent",
    "Which reviews get no answer in float16? Look at the eight reviews above, then choose.",
    (
        Option(
            "The long ones",
            "All reviews without an answer are longer than the median. But most long reviews did get an answer, as two "
            "of the eight above did.",
        ),
        Option(
            "The ones that end with a verdict, such as \u201cworth every minute\u201d, of any length",
            "Nearly all reviews without an answer do. But short reviews with a verdict get an answer, as one of the "
            "eight above does.",
        ),
        Option(
            "The ones that are hard to classify because of irony, negations or rare words",
            "They are not the hard ones. Most reviews without an answer say plainly what their author thinks.",
        ),
        Option(
            "Long ones that end with a verdict, such as \u201cworth every minute\u201d",
            "Nearly all reviews without an answer are like this. For these plain words, the network computes "
            "numbers that are too large for float16.",
            True,
        ),
    ),
    predict=True,
)
P_SOFTMAX = Choice(
    "numbers/limits/predict-softmax",
    "In float16 you compute `e = exp(x)` and then `e / sum(e)`, for x = 12, 11, 10. What do you get?",
    (
        Option(
            "0.665, 0.245, 0.090",
            "That is the true answer, and float16 can hold these numbers. But it cannot hold exp(12) = 162,755.",
        ),
        Option(
            "NaN, NaN, NaN",
            "The sum is inf, not NaN. It was added up from positive numbers, one of them infinite, so only a quotient "
            "with an infinite numerator can be NaN.",
        ),
        Option(
            "NaN, 0.731, 0.269",
            "These two are what a softmax gives for 11 and 10 alone. But all three are divided by the same sum, and "
            "exp(12) makes it inf.",
        ),
        Option(
            "NaN, 0, 0",
            "exp(12) is 162,755, beyond 65504, so it becomes inf, and so does the sum. Then inf/inf is NaN, and the "
            "other two exponentials divided by inf are 0.",
            True,
        ),
        Option(
            "inf, 0, 0", "The first exponential is inf, but so is the sum, and inf/inf could be anything, so it is NaN."
        ),
    ),
    predict=True,
)
P_E4M3 = Choice(
    "numbers/limits/predict-e4m3",
    "A library gives NaN for every number that overflows E4M3. Which numbers from 448 up does it store as 448?",
    (
        Option("only 448", "Rounding comes first: 449 is nearer to 448 than to where the next number would be."),
        Option("those from 448 up to, but not including, 464", "Almost. Which number is a tie, and where does it go?"),
        Option(
            "those from 448 to 464",
            "The next number would be 480, so 464 is the midpoint, and the tie goes to 448, the even neighbour.",
            True,
        ),
        Option(
            "those from 448 up to, but not including, 480",
            "470 is nearer to 480 than to 448, so it would round to 480, which E4M3 does not have.",
        ),
    ),
    predict=True,
)
P_UNDER = Choice(
    "numbers/limits/predict-underflow",
    "Going down this list, which number is the first that float16 stores with an error of more than 1 %?",
    (
        Option("1e-4", "That is a normal number, so its error is at most half of eps, or 0.05 %."),
        Option("1e-5", "It is a subnormal with about eight bits left, and its error is 0.14 %."),
        Option("1e-6", "It is a subnormal with five bits left, 17 times the smallest, and its error is 1.3 %.", True),
        Option(
            "None of these: below 1e-6, every number becomes 0",
            "Only numbers up to 2**-25, about 3e-8, become 0. Above that, smaller numbers have fewer bits.",
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

PLAY_MASK = Number(
    "numbers/limits/play-mask",
    "Type -1e9, a common mask value, without \u201csaturate\u201d. In how many of the thirteen formats is it stored "
    "as a finite number?",
    answer="7",
    says="Four formats reach that far. Three others have neither infinity nor NaN, so they store their lowest number.",
    wrong={
        "4": "Four formats reach that far. But look at the 6-bit and 4-bit formats too: what do they store?",
        "3": "Look at TF32 and bfloat16 again: a rounded number is finite. Also look at the 6-bit and 4-bit formats.",
        "6": "Go through the list once more, from float64 to E2M1.",
        "8": "E8M0 has no sign, so it stores NaN. One of your eight numbers is not finite.",
        "9": "Neither NaN nor infinity is finite. Two of your nine formats store one of them.",
        "13": "Look at float16: it stores minus infinity.",
        "2": "Float64 and float32 hold it exactly. A rounded number is finite too.",
        "12": "That is the count with \u201csaturate\u201d ticked. The question is about a cast without it.",
    },
    otherwise="Count the rows whose stored number is neither infinite nor NaN.",
)
PLAY_SMALL = Number(
    "numbers/limits/play-small",
    "Try powers of ten: 1e-3, 1e-4, ... What is the smallest one that E5M2 stores as more than 0?",
    answer="1e-5",
    says="1e-5 becomes 2**-16, about 1.5e-5. 1e-6 is below half of that, so it becomes 0.",
    wrong={
        "1e-6": "E5M2's smallest number is 2**-16, about 1.5e-5, and 1e-6 is below half of it.",
        "1e-4": "E5M2 also stores smaller numbers, because a stored number does not have to be normal.",
        "-5": "That is the exponent. Write the number itself, such as 1e-3.",
        "5": "That is roughly the number of zeros. Write the number itself, such as 1e-3.",
        "1e-7": "E5M2 stores that as 0. Look at the row of E5M2, not at the row of float16.",
        "2^-16": "That is the number that E5M2 stores. The question asks for the power of ten that you type.",
        "1e-8": "E5M2 stores that as 0. Only formats with more exponent bits store it as more than 0.",
    },
    otherwise="Type 1e-3, 1e-4 and so on, and look at the row of E5M2.",
)

# --- Exercises --------------------------------------------------------------------------------------------------------

LARGEST_ROW = Number(
    "numbers/limits/largest-row",
    "All logits of a row are 4, and float16 stores exp(4) as 54.59375. The exponentials are added up in float32, and "
    "the sum is rounded to float16 once. What is the largest number of logits for which it is finite?",
    answer="1200",
    says="The sum of 1200 terms is 65512.5, which rounds down to 65504. One more makes 65567.1, which is beyond 65520, "
    "so the sum becomes inf. Then every weight is 54.59375/inf = 0.",
    wrong={
        "1199": "You stopped at 65504. Which sums above 65504 still round down to it?",
        "1201": "The sum of 1201 terms is 65567.1. Where does float16 begin to round to inf?",
        "1148": "1148 is the limit if every partial sum is rounded to float16. Here the sum is rounded once.",
        "65504": "That is the largest float16 number. How many times does 54.59375 fit below the limit?",
        "16376": "That adds up the logits. A softmax adds up their exponentials, and each of these is 54.59375.",
        "16379": "That adds up the logits, up to the midpoint 65520. A softmax adds up their exponentials, and each "
        "of these is 54.59375.",
        "11": "exp overflows above 11.09. Here every exponential is finite, but their sum overflows.",
        "2048": "2048 is where a sum of ones stalls. Here each term is 54.59375, so the sum overflows first.",
        "inf": "Each term is finite, but the sum of a row is stored in float16, and float16 ends at 65504.",
    },
    within={
        "1199.7 to 1199.9": "That is 65504/54.59375, but a row has a whole number of logits, and a sum may be "
        "somewhat larger than 65504 before it becomes inf.",
        "1200.03 to 1200.15": "That is the right quotient, but a row has a whole number of logits.",
    },
    otherwise="Compare n * 54.59375 with 65520, where rounding to inf begins.",
    hints=(
        "The sum may be larger than 65504, as long as it rounds down to 65504.",
        "A sum of 65520 or more is stored as inf.",
    ),
)
CASTS = {
    "2e-8 to float16": Number(
        "numbers/limits/cast-2e-8",
        "2e-8 cast to float16",
        answer="0",
        says="The smallest positive number is 2**-24 = 5.96e-8, and 2e-8 is below half of it.",
        wrong={
            "2^-24": "5.96e-8 is the smallest positive number. 2e-8 is below half of it, so 0 is nearer.",
            "2^-25": "2**-25 is half of the smallest positive number. It is a border, not a float16 number.",
            "2e-8": "The smallest positive float16 number is 2**-24 = 5.96e-8. Nothing smaller is stored, except 0.",
            "2^-14": "That is the smallest normal number. Subnormals go on below it, down to 2**-24.",
            "nan": "Underflow never gives NaN.",
        },
        otherwise="The smallest positive float16 number is 2**-24 = 5.96e-8. Is 2e-8 nearer to it or to 0?",
    ),
    "4e-8 to float16": Number(
        "numbers/limits/cast-4e-8",
        "4e-8 cast to float16",
        answer="2^-24",
        says="4e-8 is above 2**-25 = 2.98e-8, the midpoint, so it is rounded up to 5.96e-8.",
        wrong={
            "0": "The midpoint between 0 and 2**-24 is 2**-25 = 2.98e-8. On which side of it is 4e-8?",
            "4e-8": "Below 2**-24 = 5.96e-8, float16 has nothing but 0.",
            "2^-25": "2**-25 = 2.98e-8 is the midpoint, and 4e-8 lies above it.",
            "2^-14": "That is the smallest normal number. Subnormals go on below it, down to 2**-24.",
            "nan": "Underflow never gives NaN.",
        },
        otherwise="The two nearest float16 numbers are 0 and 2**-24.",
        tolerance=0.01,  # 6e-8, as the chapter writes it
    ),
    "3.4e38 to bfloat16": Number(
        "numbers/limits/cast-34e37",
        "3.4e38 cast to bfloat16",
        answer="inf",
        says="The largest bfloat16 number is 3.3895e38. Numbers from 3.3962e38 up, half a gap further, overflow. "
        "Float32 holds 3.4e38.",
        wrong={
            "3.39e38": "That is the largest bfloat16 number. Where is the midpoint between it and 2**128 = 3.4028e38?",
            "3.4e38": "Bfloat16 has seven fraction bits: its largest number is (2 - 2**-7) * 2**127 = 3.3895e38.",
            "3.4028e38": "That is 2**128, which does not exist in bfloat16. What is stored instead?",
            "65504": "That is float16's largest number. Bfloat16 reaches 3.39e38.",
            "nan": "Overflow gives inf. A NaN comes later, for example from inf - inf.",
        },
        otherwise="The largest bfloat16 number is (2 - 2**-7) * 2**127. Is 3.4e38 beyond the midpoint above it?",
        tolerance=0.0001,
    ),
    "3e-40 to bfloat16": Number(
        "numbers/limits/cast-3e-40",
        "3e-40 cast to bfloat16",
        answer="3*2^-133",
        says="Below 2**-126, the numbers of bfloat16 are whole multiples of 2**-133 = 9.18e-41. 3e-40 is 3.27 of them, "
        "so it is rounded to 3 of them, 2.755e-40.",
        wrong={
            "0": "Bfloat16 has subnormals too. Its smallest normal number is 2**-126; divide it by 2**7.",
            "3e-40": "Subnormals are whole multiples of the smallest. What is that, and which multiple is nearest?",
            "3": "That is how many of the smallest numbers fit. Multiply it by the smallest number.",
            "2^-126": "That is the smallest normal number. Subnormals go on below it, seven powers of two further.",
            "2^-133": "That is the smallest positive number, 9.18e-41. Which of its multiples is nearest to 3e-40?",
            "2^-132": "That is twice the smallest number, 1.84e-40. There is a nearer multiple.",
            "2^-131": "That is 3.67e-40. A subnormal can be any whole multiple of the smallest number, not only a "
            "power of two.",
            "2^-149": "That is float32's smallest number. Bfloat16 has 16 fewer fraction bits.",
            "2^-24": "That is float16's smallest number. Bfloat16 has float32's exponents, so it reaches much lower.",
            "inf": "3e-40 is small: it can underflow, but not overflow.",
            "nan": "Underflow never gives NaN.",
        },
        otherwise="The smallest normal bfloat16 is 2**-126. How far apart are the subnormals below it?",
        tolerance=0.002,  # 2.76e-40
    ),
    "61000 to E5M2": Number(
        "numbers/limits/cast-61000",
        "61000 cast to E5M2",
        answer="57344",
        says="57344 = 1.75 * 2**15 is the largest E5M2 number, and 61000 is nearer to it than to 65536.",
        wrong={
            "inf": "61000 is above the largest number, but is it beyond the midpoint above that number?",
            "61000": "E5M2 has two fraction bits: its numbers are 8192 apart here.",
            "61440": "That is the midpoint of a gap. It is not an E5M2 number.",
            "65536": "65536 is 2**16, and the largest exponent of E5M2, like that of float16, is 15.",
            "49152": "That is 1.5 * 2**15. With two fraction bits there is one more number in this binade.",
            "448": "That is E4M3's largest number.",
            "65504": "That is float16's largest number. E5M2 has float16's exponents, but two fraction bits.",
            "nan": "E5M2 has infinities, so an overflow gives inf. But does 61000 overflow?",
        },
        otherwise="With two fraction bits there are four numbers from 2**15 up to 2**16. Which is the largest?",
    ),
    "61440 to E5M2": Number(
        "numbers/limits/cast-61440",
        "61440 cast to E5M2",
        answer="inf",
        says="61440 is halfway between 57344 and 65536. The tie goes to the even one, 65536, which does not exist.",
        wrong={
            "57344": "61440 is exactly halfway to 65536. Which of the two neighbours is even? 57344 is 1.75 * 2**15.",
            "65536": "The tie does go there. But E5M2's largest power is 2**15, and 65536 is 2**16. What is stored?",
            "61440": "E5M2 has two fraction bits: its numbers are 8192 apart here.",
            "49152": "That is 1.5 * 2**15, which is not one of the two neighbours of 61440.",
            "65504": "That is float16's largest number. E5M2 has float16's exponents, but two fraction bits.",
            "448": "That is E4M3's largest number.",
            "nan": "E5M2 has infinities, so a number that is too large becomes one of them.",
        },
        otherwise="Its neighbours are 57344 and, if it existed, 65536. Which of them does a tie go to?",
    ),
}
WRONG_LINE = wrong_line(
    "numbers/limits/wrong-line",
    text="This function evaluates the float16 network of this chapter, but it treats some reviews as answered although"
    " they have no answer. Press the line where a missing answer becomes an answer.",
    code="""\
def accuracy(model, batches):
    right = count = 0
    for words, labels in batches:
        logits = model(**words).logits.float()
        guesses = logits.argmax(-1)
        right += (guesses == labels).sum().item()
        count += len(labels)
    return right / count""",
    line=5,
    says="`argmax` treats a NaN as the largest entry, so for a row of NaNs it returns 0, and 0 is also a class. "
    "Check `logits.isnan()` before this line. The solutions show how much the accuracy rises without that check.",
    replies={
        1: "The name and the arguments are fine.",
        2: "Both are Python integers, which neither round nor overflow.",
        3: "Every batch is used once.",
        4: "A NaN stays NaN when it becomes float32, so it can still be seen.",
        6: "This line compares integers. The NaN is already gone, so the mistake was made earlier.",
        7: "The count includes every review, as it should.",
        8: "This line divides two integers. The numerator is wrong, but the mistake was made earlier.",
    },
)
FATE = Task(
    "numbers/limits/fate",
    "Write `fate`, which says what happens to a number in a format, without casting it.",
)
