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
            "1/64": "1/64 is the smallest subnormal. `tiny` means the smallest number that has a hidden 1.",
            "0.125": "0.125 = 2**(0 - 3) reads exponent field 0 as a normal one. Field 0 has no hidden 1: begin at 1.",
            "17/128": "That reads exponent field 0 with a hidden 1. Normal numbers begin at field 1, fraction empty.",
            "17/64": "17/64 = 2**-2 * (1 + 1/16) is the second normal number. The fraction can be empty.",
            "15/64": "15/64 is the largest subnormal, one step below. The next one has the hidden 1.",
            "0.0625": "0.0625 is `eps`, the gap above 1. The question is about a number, the smallest normal one.",
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
            "1/32": "That is half of it, the unit roundoff. `eps` is the whole gap from 1 to the next number.",
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


def _first_gap(name: str, in_prose: str, p: int, wrong: dict[str, str]) -> Number:
    """Ask for the first whole number that a format of `p` significant bits cannot hold, 2**p + 1."""
    top = 2**p
    return Number(
        f"numbers/rounding/first-gap-{name}",
        text=f"The first whole number above 0 that {in_prose} cannot hold ({p - 1} fraction bits)",
        answer=str(top + 1),
        says=f"{top} is a power of two and is held. From there on the ulp is 2, so {top + 1} is between two numbers.",
        wrong={
            str(top): f"{top} = 2**{p} is a power of two: an empty fraction holds it. What comes after it?",
            str(top - 1): f"{top - 1} is {p} ones in binary: the hidden 1 and {p - 1} fraction bits. It is held.",
            str(top // 2 + 1): f"The hidden 1 counts too: with it there are {p} bits. {top // 2 + 1} is held.",
            str(top // 2): f"{top // 2} is a power of two and is held. With the hidden 1 there are {p} bits.",
            str(2 * top + 1): f"One bit too many: {p - 1} fraction bits and the hidden 1 make {p}, not {p + 1}.",
            str(2 * top): f"{2 * top} is a power of two and is held. The holes begin before it.",
            str(top + 2): f"{top + 2} is even, and from {top} to {2 * top} the ulp is 2: it is held.",
            str(top + 3): f"{top + 3} is not held, but it is not the first.",
            **wrong,
        },
        otherwise="Not that. Whole numbers are held as long as the ulp is 1 or less. Where does it become 2?",
        hints=(
            f"With the hidden 1 there are {p} bits. How far can you count with {p} bits?",
            f"Above 2**{p} the ulp is 2.",
        ),
    )


RANGE = "{} is about the range. Long before its end, gaps are wider than 1, and whole numbers fall into them."
# Exercise 2.
FIRST_GAPS = {
    "float16": _first_gap(
        "float16",
        "float16",
        p=11,
        wrong={
            "65505": RANGE.format("65505"),
            "65504": "65504 is the largest number of float16 and is held. Whole numbers are missing much earlier.",
            "65536": RANGE.format("65536"),
            "65537": "The hidden 1 and 10 fraction bits decide, not the 16 bits of the code.",
            "257": "257 is the answer for bfloat16, which has 7 fraction bits. float16 has 10.",
        },
    ),
    "bfloat16": _first_gap(
        "bfloat16",
        "bfloat16",
        p=8,
        wrong={
            "2049": "2049 is the answer for float16. bfloat16 has 3 fraction bits fewer.",
            "16777217": "16777217 = 2**24 + 1 is the answer for float32. bfloat16 has its range, not its precision.",
            "65537": "The hidden 1 and 7 fraction bits decide, not the 16 bits of the code.",
        },
    ),
    "float8_e4m3fn": _first_gap(
        "e4m3",
        "E4M3",
        p=4,
        wrong={
            "449": RANGE.format("449"),
            "448": "448 is the largest number of E4M3 and is held. Whole numbers are missing much earlier.",
            "257": "257 is the answer for bfloat16, which has 7 fraction bits. E4M3 has 3.",
            "13": "13 is 1101 in binary: the hidden 1 and three fraction bits. It is held.",
        },
    ),
}

# Exercise 3.
STALL = Number(
    "numbers/rounding/stall",
    text="`total` is a bfloat16 and starts at 0. A loop adds losses of exactly 0.5. Where does the total stop growing?",
    answer="128",
    says="From 128 on the ulp is 1. 128.5 lies halfway between 128 and 129, and the tie goes to the even one: 128.",
    wrong={
        "256": "256 is where a loop that adds 1 stops. An addend of half an ulp is lost: where is half an ulp 0.5?",
        "64": "From 64 to 128 the ulp is 0.5, so each sum is a bfloat16 number. Go on to where half an ulp is 0.5.",
        "512": "At 512 the ulp is 4. An addend is lost much earlier, as soon as it is half an ulp.",
        "1024": "1024 is where float16 stops. bfloat16 has 3 fraction bits fewer.",
        "129": "The total reaches 128. 128.5 is a tie between 128 and 129: which of the two codes ends in 0?",
        "128.5": "128.5 is not a bfloat16 number: from 128 on the ulp is 1. Where does the sum end up instead?",
        "127.5": "127.5 + 0.5 = 128 is a bfloat16 number, so one more addition works.",
        "127": "From 64 to 128 the ulp is 0.5: 127 + 0.5 = 127.5 is held.",
        "255": "Above 128 the ulp is 1, and 0.5 is half of it. The sum never gets to 255.",
        "0.5": "0.5 + 0.5 = 1 is held. The ulp must grow to twice the addend first.",
        "1": "1 + 0.5 = 1.5 is held. The ulp must grow to twice the addend first.",
        "inf": "It never gets there: an addend of at most half an ulp changes nothing, and the ulp grows with the sum.",
    },
    otherwise="Not that. An addend is lost when it is at most half an ulp of the sum. Where is the ulp of bfloat16 1?",
    hints=(
        "The sum stands still once 0.5 is at most half an ulp. So where does the ulp become 1?",
        "The ulp is 2**(e - 7) in the binade that begins at 2**e. It is 1 for e = 7.",
    ),
)

# Exercises 4 to 6.
TO_BFLOAT16 = Task(
    "numbers/rounding/to-bfloat16",
    text="Write `to_bfloat16(word)`: round a float32 code to a bfloat16 code, ties to even, using only integers.",
)
STOCHASTIC_ROUND = Task(
    "numbers/rounding/stochastic-round",
    text="Write `stochastic_round(x, rng)`: round an array to whole numbers so that the mean stays the same.",
)
TO_E4M3 = Task(
    "numbers/rounding/find-the-bug",
    text="Find and fix every mistake in `to_e4m3`.",
)

P_COUNTER = Choice(
    "numbers/rounding/predict-257",
    predict=True,
    text="A bfloat16 counter holds 256. You add 1 four times, one after another. What does it hold?",
    options=(
        Option("260", "260 is a bfloat16 number, and adding 4 at once gives it. But each single step of 1 is lost."),
        Option(
            "256",
            "From 256 on the ulp is 2. 257 is halfway between 256 and 258, and the tie goes to the even code: 256."
            " This happens four times.",
            right=True,
        ),
        Option("257", "257 needs 9 significant bits; bfloat16 has 8. Not even the first step is stored."),
        Option(
            "264",
            "Always up would give 258, 260, 262, 264. But a tie goes to the even code, here the lower one.",
        ),
    ),
)
P_EPS = Choice(
    "numbers/rounding/predict-eps",
    predict=True,
    text="`torch.finfo(torch.float16).eps` is 0.000977. Add 0.0006 to 1, then round to float16. What comes out?",
    options=(
        Option(
            "1, because 0.0006 is smaller than `eps`",
            "`eps` is the gap above 1, not the smallest addend that counts. Anything over half of the gap rounds up.",
        ),
        Option(
            "1.000977",
            "1.0006 lies past the middle of the gap, 1.000488, so it goes to the number above. Half of `eps` decides.",
            right=True,
        ),
        Option("1.0006", "No float16 number lies between 1 and 1.000977: that is what `eps` says."),
        Option("1.0005", "1.0005 is near the middle of the gap. Only the two ends of the gap are float16 numbers."),
    ),
)
P_SMALL = Choice(
    "numbers/rounding/predict-where-fine",
    predict=True,
    text="A tutorial says: between −1 and 1, float16 has a precision of 0.0001; digits beyond that mean nothing. True?",
    options=(
        Option(
            "True: four digits after the decimal point",
            "A float does not keep a fixed number of digits after the point. Above 0.5 the gap is 0.00049;"
            " above 0.001 it is 0.00000095.",
        ),
        Option(
            "True that the gap is fixed, but it is 0.000977: `eps` holds everywhere",
            "`eps` is the gap from 1 to 2. In each binade below it is half as wide.",
        ),
        Option(
            "False: the gap shrinks with the number, and what is stored is exact",
            "Above 0.5 the gap is 0.00049, above 0.1 it is 0.000061: always between 0.0005 and 0.001 of the number, as"
            " long as it is normal. And 0.1 is stored as 0.0999755859375, exactly.",
            right=True,
        ),
        Option(
            "False: near 0 the numbers are relatively coarser, as most bits go to the exponent",
            "Every normal number has all 11 significant bits, however small it is. Your answer is true only"
            " below 2**-14.",
        ),
    ),
)
P_SUM = Choice(
    "numbers/rounding/predict-perplexity",
    predict=True,
    text="On a long text a bfloat16 total gives a perplexity that is too low. Why?",
    options=(
        Option(
            "Thousands of errors, up and down at random, pile up",
            "Random errors would leave the total sometimes above, sometimes below. Here it falls ever further behind.",
        ),
        Option(
            "The total overflows",
            "bfloat16 reaches 3.4e38, and an overflow would show as infinity. This total is a few thousand at most.",
        ),
        Option(
            "Once the total is large, most losses do not change it any more",
            "A loss that is smaller than half the gap at the total is rounded away. The count of tokens goes on.",
            right=True,
        ),
        Option(
            "Each loss is cut to three digits before it is added",
            "The losses are float32. Even in bfloat16, each would be off by at most 0.4 %, up as often as down.",
        ),
    ),
)
