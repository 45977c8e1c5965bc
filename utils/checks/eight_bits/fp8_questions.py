"""What `eight_bits/fp8` asks: what a scale does, how a product is called, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

P_LAYERS = Choice(
    "eight_bits/fp8/predict-weights",
    "Look at the first step of the run without a scale. Which weights have a gradient with any entry other than 0?",
    (
        Option(
            "All of them, but the entries are coarse",
            "E4M3 keeps four significant bits, which would be coarse. But these gradients are smaller than its "
            "smallest number.",
        ),
        Option(
            "The embedding, the norms, and the linear layers next to the output head",
            "The backward pass begins there. But what arrives at the last linear layer is already too small for any "
            "code but 0.",
        ),
        Option(
            "The embedding, the norms, and the layers that write into the residual stream",
            "The residual stream does carry the gradient to these layers, undamaged. But before they multiply, each "
            "rounds it to zeros.",
        ),
        Option(
            "Only the embedding and the last norm",
            "Nothing is rounded between the loss and these two. In each linear layer, the gradient is either rounded "
            "to zeros or a product of zeros from another layer, and the norms inside the blocks get such products too.",
            True,
        ),
    ),
    predict=True,
)
P_TOKENS = Choice(
    "eight_bits/fp8/predict-tokens",
    "A layer has 64 inputs and 32 outputs, and a batch has 40 tokens. All products have at least one E4M3 operand and "
    "the layouts that an H100 wants. Which does it refuse?",
    (
        Option("None: 64 and 32 are multiples of 16", "They are. But in one product neither of them is summed over."),
        Option("y", "It sums over the 64 inputs. The 40 tokens are rows of its result, which may be any number."),
        Option("dx", "It sums over the 32 outputs. The 40 tokens are rows of its result, which may be any number."),
        Option("dw", "It sums over the tokens, and 40 is not a multiple of 16.", True),
        Option(
            "All three: 40 is not a multiple of 16",
            "In y and dx the tokens are the rows of operand 1, for which there is no rule.",
        ),
    ),
    predict=True,
)
P_EASY = Choice(
    "eight_bits/fp8/predict-easy",
    "Leave the scale out again, but round the gradients to E5M2. A good part of them is still rounded to 0. Does this "
    "model learn?",
    (
        Option(
            "On neither text",
            "In E4M3 it did not. In E5M2 the larger gradients survive, and on the generated text they suffice.",
        ),
        Option(
            "On the generated text, but not on Shakespeare",
            "The generated text leaves large gradients, and they point in nearly the right direction.",
            True,
        ),
        Option(
            "On both texts",
            "On the generated text that is what happens. In the recorded runs on Shakespeare, the perplexity stays "
            "high.",
        ),
        Option(
            "On Shakespeare, but not on the generated text",
            "It is the other way round: Shakespeare is the harder text.",
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

PLAY_E4M3 = Number(
    "eight_bits/fp8/play-activation-e4m3",
    "Take the activation in E4M3, and move the scale by hand. What is the largest k for which the scale 2^k saturates "
    "no value?",
    answer="6",
    says="At 2^6 the amax lands at 262. At 2^7 it would land at 524, beyond 448, and that one value would cost three "
    "decibels.",
    wrong={
        "7": "At 2^7 the amax lands at 524, beyond 448: one value saturates.",
        "5": "At 2^5 nothing saturates, but the amax lands at 131. One more power of two fits.",
        "64": "That is the scale, 2^6. The question asks for k.",
        "18": "That is for the gradient. Choose the activation.",
        "448": "That is where the amax may land. The question asks for k in 2^k.",
        "109": "That is about the exact scale, 448 / amax. The question asks for a power of two below it.",
    },
    within={
        "-100 to 4": "Nothing saturates there, but the scale can be larger.",
        "8 to 17": "Too far: look at how many values saturate.",
        "19 to 100": "Too far: look at how many values saturate.",
    },
    otherwise="Press “by hand” in the widget and watch where the amax lands.",
    hints=("448 / amax is about 109.",),
)
PLAY_E5M2 = Number(
    "eight_bits/fp8/play-activation-e5m2",
    "The same tensor in E5M2: what is the largest k there?",
    answer="13",
    says="E5M2 ends at 57,344, which is 128 times 448, so its window lies seven powers of two further up.",
    wrong={
        "6": "That is for E4M3. E5M2 ends at 57,344.",
        "14": "At 2^14 the amax lands at 67,000, beyond 57,344.",
        "12": "At 2^12 nothing saturates, but one more power of two fits.",
        "25": "That is for the gradient. Choose the activation.",
        "8192": "That is the scale, 2^13. The question asks for k.",
    },
    within={
        "-100 to 11": "Nothing saturates there, but the scale can be larger.",
        "15 to 100": "Too far: look at how many values saturate.",
    },
    otherwise="Choose E5M2 in the widget and watch where the amax lands.",
    hints=("57,344 / 448 is 128.",),
)
PLAY_SMALLEST = Number(
    "eight_bits/fp8/play-smallest",
    "Go back to the gradient. Read the decibels on E5M2's plateau, then set E4M3's scale by hand. What is the smallest "
    "k for which the scale 2^k gives a better ratio in E4M3?",
    answer="7",
    says="At 2^7 the ratio is 27.7 decibels, although 90 of the 512 values become 0: they carry very little of the "
    "signal.",
    wrong={
        "6": "At 2^6 the ratio is 22.6 decibels, and E5M2 reaches 24.7.",
        "8": "At 2^8 the ratio is 31.4 decibels, far better than E5M2's 24.7. One power of two less is still enough.",
        "9": "2^9 is where E4M3's own plateau begins. The ratio on the way up to it is already better than E5M2's.",
        "128": "That is the scale, 2^7. The question asks for k.",
        "14": "2^14 is where no value becomes 0 any more. The ratio is better than E5M2's long before.",
        "18": "2^18 is the largest scale that saturates no value. Many smaller ones also give a better ratio.",
    },
    within={
        "-100 to 5": "There E4M3 has far fewer decibels than E5M2's plateau.",
        "10 to 17": "The ratio is better there, but a smaller k is enough.",
        "19 to 100": "There values saturate, and the ratio is worse.",
    },
    otherwise="Choose E5M2 in the widget and read the ratio at a large scale, then choose E4M3 and begin at scale 1.",
    hints=("E5M2's plateau lies at 24.7 decibels.",),
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------

SCALE, STORED, BACK, SMALLEST = (
    "the scale",
    "what is stored for 0.005",
    "what 0.005 comes back as",
    "the smallest magnitude above 0 that comes back",
)
THERE_AND_BACK = {
    SCALE: Number(
        "eight_bits/fp8/there-and-back",
        "A tensor with an amax of 0.0875 is stored in E4M3. By what scale is it multiplied first?",
        answer="5120",
        says="448 / 0.0875.",
        wrong={
            "0.0001953125": "That is `inv_scale`, amax / 448. The scale is what the tensor is multiplied by before it "
            "is rounded: it takes amax to 448.",
            "4096": "That is the power of two below it, and would do nearly as well. Equation 1 uses the whole range.",
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
        "With that scale, which value of E4M3 is stored for 0.005?",
        answer="26",
        says="0.005 · 5120 = 25.6, and the values between 16 and 32 are 2 apart.",
        wrong={
            "25.6": "That is what is rounded. Between 16 and 32, E4M3 has 16, 18, 20, 22, 24, 26 ...",
            "25.5": "Values 1/2 apart lie between 4 and 8. How far apart are they between 16 and 32?",
            "25": "Between 16 and 32, E4M3's values are 2 apart.",
            "24": "25.6 is nearer to 26.",
            "93": "That is its code, 0x5D. The question asks for the value.",
            "1011101": "That is its code in bits. The question asks for the value.",
            "0.005859375": "That is stored for 0.005 as it is: three steps of 2^-9. Multiply by the scale first.",
            "0.005078125": "That is what comes back. What is stored is the value before that.",
            "0": "Multiply by the scale first.",
        },
        otherwise="Multiply 0.005 by the scale, then take the nearest value of E4M3: four significant bits.",
        hints=("Four significant bits between 16 and 32 give 16, 18, 20 ...",),
        near=0,
    ),
    BACK: Number(
        "eight_bits/fp8/back",
        "What does 0.005 come back as?",
        answer="0.005078125",
        says="26 / 5120: 1.6 % too large, from 25.6 to 26.",
        wrong={
            "0.005": "25.6 was rounded to 26, and that does not come back.",
            "26": "That is stored. `inv_scale` takes it back.",
            "133120": "You have multiplied by the scale again. What takes it back is `inv_scale`, 1/5120.",
            "0.005859375": "That is what 0.005 becomes without a scale.",
        },
        otherwise="Take what is stored, and multiply by `inv_scale`, 1/5120.",
        hints=("26 divided by 5120.",),
        tolerance=0.005,
        near=0.01,
    ),
    SMALLEST: Number(
        "eight_bits/fp8/smallest",
        "What is the smallest magnitude above 0 that can come back with that scale?",
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


TINY = "normally distributed, standard deviation 2**-30"
WIDE = "magnitudes from 2**-48 to 2**-8, evenly on a log scale"
NARROWER = "magnitudes from 2**-32 to 2**-8, evenly on a log scale"
OUTLIER = "normally distributed, one value 100,000 standard deviations from 0"
WHICH_FORMAT = {
    TINY: _format(
        "which-format",
        TINY,
        e4m3="The scale brings them into E4M3's range, however small they are. Nearly all lie in the ten binades "
        "below amax, and E4M3 stores those with one more fraction bit than E5M2.",
        e5m2="Range is not what it lacks: with a scale, nearly all values lie in the ten binades below amax. E4M3 has "
        "fifteen, and one bit more.",
        right="E4M3",
    ),
    WIDE: _format(
        "which-format-gradient",
        WIDE,
        e4m3="The middle value lies 20 binades below amax. E4M3 has 15 of normal numbers and three of subnormal ones, "
        "so that half of the tensor is lost.",
        e5m2="The middle value lies 20 binades below amax, and E5M2 has 30 of normal numbers.",
        right="E5M2",
    ),
    NARROWER: _format(
        "which-format-narrower",
        NARROWER,
        e4m3="The middle value lies 12 binades below amax, where E4M3 has normal numbers, with one bit more. A fifth "
        "of the values become 0, but this does not touch the median.",
        e5m2="E5M2 loses no value and E4M3 a fifth of them, but a median looks at the middle: 12 binades below amax, "
        "E4M3's numbers are normal, with one bit more.",
        right="E4M3",
    ),
    OUTLIER: _format(
        "which-format-outlier",
        OUTLIER,
        e4m3="Without the one large value, E4M3 would be right. With it, the median lies 17 binades below amax, only "
        "one or two of E4M3's smallest steps from 0.",
        e5m2="The median lies 17 binades below amax. E4M3 stores it as one or two of its smallest steps, while E5M2 "
        "still stores it as a normal number.",
        right="E5M2",
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

TO_FNUZ = Task(
    "eight_bits/fp8/to-fnuz",
    "Write `to_fnuz(codes, inv_scale)`: the same tensor in `torch.float8_e4m3fnuz`, and the number that takes it back.",
)
LINEAR_STEP = Task(
    "eight_bits/fp8/linear-step",
    "Write `linear_step(x, w, dy, product)`: y, dx and dw of a linear layer by three products that refuse what an H100 "
    "refuses.",
)
SATURATING_CAST = Task(
    "eight_bits/fp8/saturating-cast",
    "Write `cast(x, scale)`: E4M3 codes in which large finite values are ±448, and infinity and NaN are NaN.",
)
