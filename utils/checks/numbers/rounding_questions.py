"""What `numbers/rounding` asks: the answers that people really give, and what is said to each."""

from utils.checks.questions import Choice, Number, Option, Task

# Exercise 1. E3M4: 1 sign bit, 3 exponent bits, 4 fraction bits, bias 3, infinities and NaNs as in IEEE 754.
E3M4 = {
    "max": Number(
        "numbers/rounding/e3m4-max",
        text="`max` of E3M4, the largest finite value",
        answer="15.5",
        says="The code below infinity is 0 110 1111: 2**(6 - 3) * (1 + 15/16) = 8 * 1.9375.",
        wrong={
            "31": "31 would be 0 111 1111. An exponent field of all ones holds infinities and NaNs, no numbers.",
            "30": "30 would be right if only one code were NaN, as in E4M3. Here the whole top field is taken.",
            "16": "16 is the next power of two. Its exponent field would be all ones, so that code means infinity.",
            "8": "8 is 2**3 with an empty fraction. How far can the fraction still grow?",
            "15": "15 = 8 * 1.875 uses three fraction bits. There are four.",
            "15.75": "15.75 = 8 * 1.96875 uses five fraction bits. Four are stored, after the hidden 1.",
            "7.5": "7.5 = 8 * 15/16: the hidden 1 is missing. The significand is 1 + 15/16.",
            "7.75": "The exponent is one too small. The largest field for a number is 6, and 6 - 3 = 3.",
            "124": "That takes the field 6 for the exponent itself. Subtract the bias: 6 - 3 = 3.",
            "248": "That takes the field 7 for the exponent itself. Subtract the bias, and leave field 7 to infinity.",
            "240": "240 would be E4M3's largest if its top exponent were reserved. E3M4 has one exponent bit fewer.",
            "448": "448 is the largest number of E4M3. E3M4 has one exponent bit fewer.",
            "0x6F": "0x6F is the right code. The question asks for its value.",
            "-15.5": "That is `min`. The largest value is positive: its sign bit is 0.",
        },
        otherwise="Not that. Infinity is the code 0 111 0000. Write down the code before it, then decode it.",
        hints=(
            "An exponent field of all ones is taken by infinities and NaNs. What is the largest field left?",
            "The exponent field is 110, which is 6, and the bias is 3. The fraction field is 1111.",
        ),
    ),
    "smallest_normal": Number(
        "numbers/rounding/e3m4-smallest-normal",
        text="`smallest_normal` of E3M4 (`tiny` is the same number)",
        answer="0.25",
        says="0 001 0000: exponent field 1 is the first with a hidden 1, and 2**(1 - 3) = 1/4.",
        wrong={
            "1/64": "1/64 has no hidden 1. `tiny` means the smallest number that has one.",
            "0.125": "0.125 = 2**(0 - 3) reads exponent field 0 as a normal one. Field 0 has no hidden 1: begin at 1.",
            "17/128": "That reads exponent field 0 with a hidden 1. Normal numbers begin at field 1, fraction empty.",
            "17/64": "17/64 = 2**-2 * (1 + 1/16) is the second normal number. The fraction can be empty.",
            "15/64": "15/64 is the largest subnormal, one step below. The next one has the hidden 1.",
            "0.0625": "0.0625 = 2**-4 is smaller: its exponent field would be 0, and normal numbers begin at 1.",
            "0.5": "The bias is 3, so exponent field 1 means 2**(1 - 3).",
            "2": "That forgets the bias: exponent field 1 means 2**(1 - 3).",
            "0": "0 is not normal: its exponent field is 0.",
            "-15.5": "Smallest means smallest in magnitude, next to zero. -15.5 is `min`.",
        },
        otherwise="Not that. Which is the first exponent field with a hidden 1? Take an empty fraction with it.",
        hints=(
            "Exponent field 0 means zero and subnormals. Normal numbers begin at field 1.",
            "The code is 0 001 0000, and the bias is 3.",
        ),
    ),
    "smallest_subnormal": Number(
        "numbers/rounding/e3m4-smallest-subnormal",
        text="The smallest positive E3M4 number, which `torch.finfo` does not report",
        answer="2^-6",
        says="0 000 0001: 2**(1 - 3) * 1/16 = 2**-6. `tiny` is 16 times as large.",
        wrong={
            "0.25": "0.25 is the smallest normal number, `tiny`. With exponent field 0 the fraction goes lower.",
            "1/128": "That is half of it. Subnormals use the exponent 1 - bias = -2, not 0 - bias.",
            "0.125": "0.125 = 2**(0 - 3) reads exponent field 0 as a normal one. It has no hidden 1.",
            "17/128": "That keeps the hidden 1 and the exponent 0 - bias. Exponent field 0 means neither.",
            "17/64": "That keeps the hidden 1. With exponent field 0 the significand is 0 + 1/16.",
            "0.0625": "1/16 is one step of the fraction. It still has to be multiplied by 2**-2.",
            "1/32": "That is twice as much. There are four fraction bits: the first step is 1/16, times 2**-2.",
            "0": "0 is not positive. The next code is 0 000 0001.",
            "1": "1 is the code. The question asks for its value.",
        },
        otherwise="Not that. The code is 0 000 0001: no hidden 1, the exponent 1 - bias, and 1/16.",
        hints=(
            "The code after zero is 0 000 0001. Is there a hidden 1?",
            "Without the hidden 1 the significand is 1/16. Its exponent is that of field 1.",
        ),
    ),
    "eps": Number(
        "numbers/rounding/e3m4-eps",
        text="`eps` of E3M4",
        answer="2^-4",
        says="After 1 comes 1 + 1/16: four fraction bits, so `eps` = 2**-4.",
        wrong={
            "1/32": "That is half of it. `eps` is the whole gap from 1 to the next number.",
            "17/16": "17/16 is the number after 1. `eps` is how far it is from 1.",
            "0.125": "One bit too few: from 1 to 2 there are 2**4 = 16 steps. 0.125 is the gap above 2.",
            "1/64": "1/64 is the gap above 0. `eps` is the gap above 1.",
            "0.25": "0.25 is the smallest normal number. `eps` is the gap above 1.",
            "0.1": "0.1 is `resolution`, a power of ten. `eps` is a gap between two numbers, a power of two.",
            "4": "4 is the number of fraction bits. The last of them is worth 2**-4.",
        },
        otherwise="Not that. Which number comes after 1, and how far away is it?",
        hints=("1 is 0 011 0000. Which code comes next?", "0 011 0001 is 1 + 1/16."),
    ),
    "unit roundoff": Number(
        "numbers/rounding/e3m4-unit-roundoff",
        text="The unit roundoff u of E3M4, the bound on the relative error of rounding to nearest",
        answer="2^-5",
        says="Half of `eps`: the nearest number is at most half a gap away. u = 2**-5, about 3 %.",
        wrong={
            "0.0625": "That is `eps`, the whole gap. The nearest number is at most half a gap away.",
            "1/64": "That is half of it. Four stored bits and the hidden 1 make p = 5, and u = 2**-p.",
            "0.5": "Half an ulp is right, in ulps. As a share of the number itself it is half of `eps`.",
            "0.1": "0.1 is `resolution`, which counts decimal digits. u is half of `eps`.",
            "3.125": "In percent that is right. Write it as a share: divide by 100.",
            "5": "5 is the precision p. The unit roundoff is 2**-p.",
        },
        otherwise="Not that. Between 1 and 2 the gap is `eps`. How far can a number be from the nearest one?",
        hints=("Rounding to nearest is off by at most half a gap.", "Take half of `eps`."),
    ),
    "resolution": Number(
        "numbers/rounding/e3m4-resolution",
        text="`resolution` of E3M4, in torch `10**-floor(M * log10(2))` with M fraction bits; log10(2) is 0.301",
        answer="0.1",
        tolerance=1e-9,  # 10**-1 and 0.1 in any arithmetic
        says="4 * 0.301 = 1.2, so one decimal digit is safe: 10**-1. It is not a gap between two numbers.",
        wrong={
            "0.0625": "0.0625 is `eps`, a gap. `resolution` is a power of ten: it counts decimal digits.",
            "1/32": "1/32 is the unit roundoff. `resolution` is a power of ten: it counts decimal digits.",
            "1": "1 is the number of digits, 4 * 0.301 rounded down (or `resolution` of E4M3). The answer is 10**-1.",
            "10": "The exponent is negative: 10**-1.",
            "1.2": "1.2 digits is 4 * 0.301. Round it down to whole digits; `resolution` is 10 to minus that.",
            "0.01": "Two digits would need 7 fraction bits: 7 * 0.301 = 2.1. Four bits give 1.2, rounded down to 1.",
            "0.001": "0.001 is float16's: 10 * 0.301 = 3.01. E3M4 has four fraction bits.",
            "1/64": "1/64 is the gap above 0. `resolution` is not a gap but a power of ten.",
        },
        otherwise="Not that. Multiply 4 by 0.301, round down, and take ten to minus that.",
        hints=("How many decimal digits do four bits hold? 4 * 0.301 = 1.2.", "Whole digits only: 10**-1."),
    ),
}


def _first_even_gap(name: str, in_prose: str, p: int, wrong: dict[str, str]) -> Number:
    """Ask for the first even number that a format of `p` significant bits cannot hold, 2**(p + 1) + 2."""
    top = 2 ** (p + 1)
    return Number(
        f"numbers/rounding/first-even-gap-{name}",
        text=f"The first even number above 0 that {in_prose} cannot hold ({p - 1} fraction bits)",
        answer=str(top + 2),
        says=f"Up to {top} the ulp is 2 or less. From there on it is 4, so {top + 2} is between two numbers.",
        wrong={
            str(top): f"{top} = 2**{p + 1} is a power of two: an empty fraction holds it. What comes after it?",
            str(top - 2): f"{top - 2} is twice {top // 2 - 1}, which is {p} ones in binary. It is held.",
            str(top // 2 + 1): f"{top // 2 + 1} is the first whole number that is not held, but it is odd.",
            str(top // 2): f"{top // 2} is a power of two and is held. The odd numbers end there.",
            str(top // 2 + 2): f"From {top // 2} to {top} the ulp is 2, so every even number is held there.",
            str(top // 4 + 2): f"The hidden 1 counts too: with it there are {p} bits. {top // 4 + 2} is held.",
            str(top + 1): f"{top + 1} is odd, and odd numbers were lost earlier.",
            str(top + 4): f"{top + 4} is a multiple of 4, and from {top} to {2 * top} the ulp is 4: it is held.",
            str(top + 6): f"{top + 6} is not held, but it is not the first.",
            str(2 * top): f"{2 * top} is a power of two and is held. Even numbers are missing before it.",
            str(2 * top + 2): f"One bit too many: {p - 1} fraction bits and the hidden 1 make {p}, not {p + 1}.",
            **wrong,
        },
        otherwise="Not that. Even numbers are held as long as the ulp is 2 or less. Where does it become 4?",
        hints=(
            f"An even number is twice a whole number. How far can you count with {p} bits, the hidden 1 included?",
            f"Every whole number up to 2**{p} is held, so every even one up to twice that.",
        ),
    )


RANGE = "{} is about the range. Long before its end, gaps are wider than 2, and even numbers fall into them."
# Exercise 2.
FIRST_GAPS = {
    "float32": _first_even_gap(
        "float32",
        "float32",
        p=24,
        wrong={
            "4294967298": "4294967298 = 2**32 + 2. The 24 significant bits decide, not the 32 bits of the code.",
            "4098": "4098 is the answer for 11 significant bits, those of float16. float32 has 24.",
            "514": "514 is the answer for 8 significant bits, those of bfloat16. float32 has 24.",
        },
    ),
    "float8_e4m3fn": _first_even_gap(
        "e4m3",
        "E4M3",
        p=4,
        wrong={
            "450": RANGE.format("450"),
            "448": "448 is the largest number of E4M3 and is held. Even numbers are missing much earlier.",
            "258": "258 = 2**8 + 2. The 4 significant bits decide, not the 8 bits of the code.",
            "26": "26 is twice 13, 1101 in binary: the hidden 1 and three fraction bits. It is held.",
        },
    ),
    "float8_e5m2": _first_even_gap(
        "e5m2",
        "E5M2",
        p=3,
        wrong={
            "57346": RANGE.format("57346"),
            "57344": "57344 is the largest number of E5M2 and is held. Even numbers are missing much earlier.",
            "34": "34 is the answer for E4M3, which has 3 fraction bits. E5M2 has 2.",
            "66": "66 = 2**6 + 2. Five exponent bits give the range; the three significant bits decide here.",
        },
    ),
}

# Exercise 3.
STALL = Number(
    "numbers/rounding/stall-of-threes",
    text="`total` is a float16 and starts at 0. A loop adds losses of exactly 3. Where does the total stop growing?",
    answer="8192",
    says="From 8192 on the ulp is 8, and 3 is less than half of it. Below, it is more than half an ulp.",
    wrong={
        "4096": "At 4096 the ulp is 4, and 3 is more than half of it: 4099 is rounded up to 4100. Go on.",
        "2048": "2048 is where a loop that adds 1 stops. 3 is more than half of the ulp there, which is 2.",
        "6144": "6144 = 3 * 2048. From 4096 to 8192 the ulp is 4, so 3 still moves the sum.",
        "8190": "8190 is the last multiple of 3 below 8192. But the total left those at 2049, rounded to 2048.",
        "8191": "From 4096 on only multiples of 4 are held, so the sum is never 8191.",
        "8193": "From 8192 on only multiples of 8 are held.",
        "8195": "8195 is the exact next sum. Its neighbours are 8192 and 8200: which is nearer?",
        "8200": "8192 + 3 = 8195 is nearer to 8192 than to 8200.",
        "8188": "8188 + 3 = 8191 lies between 8188 and 8192 and is nearer to 8192: one more addition counts.",
        "16384": "At 16384 the ulp is 16. The sum stops as soon as half an ulp is more than 3.",
        "1024": "1024 is where bfloat16 stops. float16 has 3 fraction bits more.",
        "256": "256 is where ones stop in bfloat16. Here the format is float16, and the addend is 3.",
        "65504": "65504 is the largest number. An addend is lost much earlier, as soon as it is less than half an ulp.",
        "3": "3 + 3 = 6 is held. The ulp must grow to more than twice the addend first.",
        "inf": "It never gets there: an addend below half an ulp changes nothing, and the ulp grows with the sum.",
    },
    otherwise="Not that. An addend is lost when it is less than half an ulp of the sum. How large is it then?",
    hints=(
        "The sum stands still once 3 is less than half an ulp. Ulps are powers of two: which one is that?",
        "The ulp of float16 is 2**(e - 10) in the binade that begins at 2**e. Which e is the first with more than 6?",
    ),
)

# Exercises 4 and 5.
TO_BFLOAT16 = Task(
    "numbers/rounding/to-bfloat16",
    text="Write `to_bfloat16(word)`: round a float32 code to a bfloat16 code, ties to even, using only integers.",
)
TO_E4M3 = Task(
    "numbers/rounding/find-the-bug",
    text="Find and fix every mistake in `to_e4m3`.",
)

# Under the number line.
PLAY_TICKS = Number(
    "numbers/rounding/play-ticks",
    text="Go down from 1 in E4M3. What is the largest number below which all ticks are equally far apart?",
    answer="2^-5",
    says="From 2**-5 down to 0 all ticks are 2**-9 apart. The subnormals begin below 2**-6, but they have the same gap"
    " as the lowest binade of normal numbers.",
    wrong={
        "2^-6": "2**-6 is the smallest normal number, and the subnormals begin below it. Are the ticks just above it"
        " wider apart than those below?",
        "2^-9": "2**-9 is the last gap itself, and the smallest number above 0. How far up does this gap last?",
        "2^-7": "7 is the bias. The subnormals begin at 2**(1 - 7), and the gap has become constant even before.",
        "2^-4": "From 2**-5 to 2**-4 the ticks are 2**-8 apart, and below 2**-5 closer still.",
        "2^-8": "2**-8 is the gap from 2**-5 to 2**-4. The question asks for a place on the line.",
        "7/512": "7/512 is the largest subnormal. The tick above it is as far away as the one below it.",
        "0": "The ticks near 0 are all 2**-9 apart. Go up until they are wider apart.",
    },
    otherwise="Not that. Compare the gaps on both sides of a power of two: is the upper one twice the lower one?",
    hints=(
        "The gap at the smallest number above 0 is 2**-9. Go up from there.",
        "In the lowest normal binade, from 2**-6 to 2**-5, the three fraction bits are worth 2**-9 each step.",
    ),
)

P_COUNTER = Choice(
    "numbers/rounding/predict-from-4094",
    predict=True,
    text="A float16 counter holds 4094. You subtract 1 from it 4,094 times. What does it hold?",
    options=(
        Option("0", "Only if every whole number on the way were a float16. From 2048 to 4096 only even ones are."),
        Option("2048", "Counting up ends at 2048. Counting down, the counter stands still long before it gets there."),
        Option(
            "4092",
            "4093 is halfway between 4092 and 4094, and goes to 4092, whose last bit is 0. Next, 4091 is halfway"
            " between 4090 and 4092, and the tie goes back to 4092, every time.",
            right=True,
        ),
        Option(
            "4094",
            "The first step is a tie between 4092 and 4094. It goes to the one whose last bit is 0. Last bits"
            " alternate, and 4096 has a 0, so 4094 has a 1.",
        ),
        Option(
            "−1023",
            "Ties that always go down would lead there: by 2 each time to 2048, then by 1. But a tie goes to the"
            " neighbour whose last bit is 0, which may be the upper one.",
        ),
    ),
)
P_EPS = Choice(
    "numbers/rounding/predict-tolerance",
    predict=True,
    text="Two results in float16 lie between 8 and 16. You test `abs(a - b) < eps`, with `eps` from"
    " `torch.finfo(torch.float16)`. Which a and b pass?",
    options=(
        Option(
            "Equal numbers and neighbours, because `eps` is the gap between neighbours",
            "It is from 1 to 2. From 8 to 16 neighbours are 8 times `eps` apart, so they fail.",
        ),
        Option(
            "Numbers up to eight gaps apart, because precision is relative",
            "The gap grows with the numbers and `eps` does not. So the test becomes stricter, not looser.",
        ),
        Option(
            "Equal numbers only, because neighbours are eight times as far apart as at 1",
            "From 8 to 16 the gap is 8 times `eps`. Two different numbers are at least that far apart.",
            right=True,
        ),
        Option(
            "Numbers that differ by one rounding, because a rounding moves a number by less than `eps`",
            "That holds from 1 to 2. From 8 to 16 rounding moves a number by up to 4 times `eps`.",
        ),
    ),
)
P_SMALL = Choice(
    "numbers/rounding/predict-which-interval",
    predict=True,
    text="Which interval holds more float16 numbers: from 1/1024 to 1, or from 1 to 1024?",
    options=(
        Option(
            "From 1 to 1024, because it is a thousand times longer",
            "It is, but at 1024 the gaps are a thousand times wider than at 1.",
        ),
        Option(
            "From 1 to 1024: with the fixed gap `eps` = 1/1024 it holds a million, the other a thousand",
            "`eps` is the gap from 1 to 2 only. It doubles with each binade above and halves with each one below.",
        ),
        Option(
            "From 1/1024 to 1, because floating-point numbers crowd near 0",
            "They lie closer together there, and the interval is shorter in the same proportion.",
        ),
        Option(
            "Both hold equally many, because each is ten doublings long",
            "Every binade, from one power of two to the next, holds 1,024 numbers.",
            right=True,
        ),
    ),
)
P_SUM = Choice(
    "numbers/rounding/predict-smallest-first",
    predict=True,
    text="You sort the losses and add the smallest first, as some textbooks advise. What does the last line then"
    " show for bfloat16?",
    options=(
        Option(
            "Almost what it shows for float32, because small losses meet a small total",
            "They do, but most of the sum comes from the losses above 1. Those come last, when the total is large.",
        ),
        Option(
            "Hardly more than now, because most of the sum still meets a large total",
            "Once the total has reached 512, only losses above 2 count, in any order. Sorted, all of those come after"
            " 512, which adds a little.",
            right=True,
        ),
        Option(
            "Exactly the same as now, because a sum does not depend on the order",
            "In exact arithmetic it does not. Here each addition rounds, and which losses count depends on the total"
            " that they meet.",
        ),
        Option(
            "Much less than now, because the large losses come last, when nothing counts any more",
            "At the end the largest losses, those above 2, still count, each as 4. So the total even ends higher.",
        ),
    ),
)
P_KAHAN = Choice(
    "numbers/rounding/predict-kahan-in-e4m3",
    predict=True,
    text="In E4M3, ones are added to 0, one after another. The plain sum stops at 16. Where does Kahan's sum stop?",
    options=(
        Option(
            "Also at 16",
            "At a sum of 16, a 1 is no more than half a gap, which stops the plain sum. Kahan's `excess` collects the "
            "lost ones until they are large enough to change the sum.",
        ),
        Option(
            "At 32",
            "`excess` has four significant bits of its own, so it is worth more than one.",
        ),
        Option(
            "At 256",
            "At 256 the gap is 32, so more than 16 ones must be collected. But once `excess` is −16, its own"
            " gap is 2: one more would make 17, which is rounded back to 16.",
            right=True,
        ),
        Option(
            "Not before 448, the largest number",
            "`excess` is an E4M3 number too. When it gets large, it loses ones in its turn.",
        ),
    ),
)
