"""What `eight_bits/fp8` asks: what a scale does, how a product is called, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

P_WHAT_CHANGED = Choice(
    "eight_bits/fp8/predict-what-changed",
    "Both FP8 runs keep the same number of significant bits. What did the multiplication change?",
    (
        Option(
            "The weights: they lie around 0.05, not far above E4M3's smallest normal number, so that many became zero",
            "They do lie there, and some lost a bit or two. But what becomes zero is below 0.001, and few weights are.",
        ),
        Option(
            "The activations: without it the largest of them were past 448 and saturated",
            "Activations after a norm are a few units large. Nothing comes near 448.",
        ),
        Option(
            "The gradients: without it they were too small for any code but zero",
            "Relative precision is the same at every size as long as there are exponents left.",
            True,
        ),
        Option(
            "Nothing: one seed each, and a small network; the runs differ by luck",
            "One seed is little. But two of the three losses lie on each other, and the third never comes near.",
        ),
    ),
    predict=True,
)
P_FIVE = Choice(
    "eight_bits/fp8/predict-five",
    "x and w are FP8 codes, x_inv and w_inv what takes them back. Four of these lines fail, or return what nobody "
    "wants, on every machine. Which one gives the right product on a CPU, and an error on a GPU?",
    (
        Option("`torch.randn(48, 64, dtype=torch.float8_e4m3fn)`", "It fails everywhere: nothing is computed in FP8."),
        Option("`x + x`", "It fails everywhere: FP8 has no addition in torch."),
        Option(
            "`x @ w.t()`",
            "Where it works it returns FP8: the sums are rounded to 8 bits, and the scales are not in it.",
        ),
        Option(
            "`torch._scaled_mm(x, w.t(), out_dtype=...)`",
            "It fails everywhere: the scales are arguments that have to be there.",
        ),
        Option(
            "`torch._scaled_mm(x, w.t().contiguous(), scale_a=x_inv, scale_b=w_inv, ...)`",
            "The same numbers in another order of memory: a CPU does not mind, an FP8 unit does.",
            True,
        ),
    ),
    predict=True,
)
P_FORWARD = Choice(
    "eight_bits/fp8/predict-forward",
    "In training, leaving out the scale tripled the perplexity. Now this model, trained in float32, reads a text "
    "that it has not seen, and its linear layers multiply in FP8 without a scale. What becomes of its perplexity?",
    (
        Option(
            "It triples: the same rounding, the same damage",
            "The damage was done in the backward pass, and there is none here.",
        ),
        Option(
            "It grows by some ten percent",
            "The logits move by a few percent. But a perplexity asks which token is likely, and that hardly changes.",
        ),
        Option(
            "It changes in the third digit or later",
            "Weights and activations lie where E4M3 has normal numbers, and rounding errors that disagree cancel.",
            True,
        ),
        Option(
            "It becomes NaN, since large activations overflow",
            "They are far below 448. And what is past it saturates here.",
        ),
    ),
    predict=True,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------

SCALE, STORED, BACK, SMALLEST = (
    "the scale",
    "what is stored for 0.001",
    "what 0.001 comes back as",
    "the smallest magnitude above 0 that comes back",
)
THERE_AND_BACK = {
    SCALE: Number(
        "eight_bits/fp8/there-and-back",
        "An amax of 0.0875 goes into E4M3. What is the scale, which the tensor is multiplied by?",
        answer="5120",
        says="448 / 0.0875.",
        wrong={
            "0.0001953125": "That is `inv_scale`, amax / 448. The scale is what the tensor is multiplied by before it "
            "is rounded: it takes amax to 448.",
            "4096": "That is the power of two below it, and does nearly as well. Equation 1 uses all of the range.",
            "448": "448 is where amax should land. What do you multiply 0.0875 by to get there?",
            "39.2": "448 times amax. The scale takes amax to 448: divide.",
            "655360": "That is for E5M2, which ends at 57344.",
            "2742.857": "That is with 240, where E4M3 would end if it had infinities.",
        },
        otherwise="The scale takes amax to the largest value of E4M3, 448.",
        hints=("scale times 0.0875 is 448.",),
        tolerance=0.0005,
    ),
    STORED: Number(
        "eight_bits/fp8/stored",
        "With that scale, which value of E4M3 is stored for 0.001?",
        answer="5",
        says="0.001 · 5120 = 5.12, and the values between 4 and 8 are 1/2 apart.",
        wrong={
            "5.12": "That is what is rounded. Between 4 and 8, E4M3 has 4, 4.5, 5, 5.5 ...",
            "5.5": "5.12 is nearer to 5.",
            "0.001953125": "That is stored for 0.001 as it is: one step of 2^-9. Multiply by the scale first.",
            "0.0009765625": "That is what comes back. Stored is the value before it is taken back.",
            "0": "Multiply by the scale first: 0.001 becomes about five.",
        },
        otherwise="Multiply 0.001 by the scale, then take the nearest value of E4M3: four significant bits.",
        hints=("Between 4 and 8 the values of E4M3 are 1/2 apart.",),
        near=0,
    ),
    BACK: Number(
        "eight_bits/fp8/back",
        "What is 0.001 after the way there and back?",
        answer="0.0009765625",
        says="5 / 5120: 2.3 % too small, from 5.12 to 5.",
        wrong={
            "0.001": "5.12 was rounded to 5, and that does not come back.",
            "5": "That is stored. `inv_scale` takes it back.",
            "25600": "You have multiplied by the scale again. What takes it back is `inv_scale`, 1/5120.",
            "0.001953125": "That is what 0.001 becomes without a scale.",
        },
        otherwise="Take what is stored, and multiply by `inv_scale`, 1/5120.",
        hints=("5 divided by 5120.",),
        tolerance=0.005,
        near=0.01,
    ),
    SMALLEST: Number(
        "eight_bits/fp8/smallest",
        "Which is the smallest magnitude above 0 that can come back with that scale?",
        answer="0.0000003814697265625",
        says="2^-9 / 5120. Without the scale it is 2^-9, about 0.002.",
        wrong={
            "0.001953125": "That is E4M3's smallest subnormal, 2^-9, as it is stored. Take it back too.",
            "0.0000030517578125": "That is the smallest normal number taken back, 2^-6 / 5120. Three binades of "
            "subnormals lie below.",
            "0.00000019073486328125": "That is the border, 2^-10 / 5120: what is larger is stored as the smallest "
            "subnormal, and comes back as twice that.",
            "10": "2^-9 times 5120. What takes a stored value back is `inv_scale`.",
        },
        otherwise="The smallest value of E4M3 above 0 is the subnormal 2^-9. Take it back.",
        hints=("E4M3's values below 2^-6 are multiples of 2^-9.",),
        tolerance=0.005,
        near=0.01,
    ),
}


def _format(name: str, text: str, *, e4m3: str, e5m2: str, right: str) -> Choice:
    hints = {"E4M3": e4m3, "E5M2": e5m2}
    return Choice(
        f"eight_bits/fp8/{name}",
        f"{text[0].upper()}{text[1:]}: E4M3 or E5M2?",
        tuple(Option(name, says, name == right) for name, says in hints.items()),
    )


WEIGHT = "a weight, normal numbers of standard deviation 0.02"
GRADIENT = "a gradient whose magnitudes span 2**-48 to 2**-8 evenly"
ACTIVATION = "an activation between 0.5 and 900"
WHICH_FORMAT = {
    WEIGHT: _format(
        "which-format",
        WEIGHT,
        e4m3="Its amax is four or five standard deviations: nearly all values lie in the ten binades below it, and "
        "E4M3 holds them with a bit more.",
        e5m2="Range is not what it lacks: with a scale, nearly all values lie in the ten binades below amax. E4M3 has "
        "fifteen, and one bit more.",
        right="E4M3",
    ),
    GRADIENT: _format(
        "which-format-gradient",
        GRADIENT,
        e4m3="The middle value lies 20 binades below amax. E4M3 has 15 of normal numbers and three of subnormal ones, "
        "so that half of the tensor is lost.",
        e5m2="The middle value lies 20 binades below amax, and E5M2 has 30 of normal numbers.",
        right="E5M2",
    ),
    ACTIVATION: _format(
        "which-format-activation",
        ACTIVATION,
        e4m3="900 is past 448, but that is what a scale is for: times about one half. Eleven binades are left, and all "
        "are normal.",
        e5m2="900 is past the end of E4M3, and a scale of about one half brings it inside. Then the extra bit counts.",
        right="E4M3",
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

TO_CODES = Task(
    "eight_bits/fp8/to-codes",
    "Write `to_codes(x)`: the codes of a float32 tensor in `torch.float8_e4m3fn`, with the scale of its amax, and the "
    "number that takes them back.",
)
COLUMN_MAJOR = Task(
    "eight_bits/fp8/column-major",
    "Write `column_major(b)`: the same matrix [K, N] with the numbers of a column side by side in memory.",
)
LINEAR_STEP = Task(
    "eight_bits/fp8/linear-step",
    "Write `linear_step(x, w, dy, product)`: y, dx and dw of a linear layer by three FP8 products.",
)
SAFE_SCALE = Task(
    "eight_bits/fp8/safe-scale",
    "Write `safe_scale(x)`: 448 / amax, and something positive and finite where that is not.",
)
