"""What `training/tensors` asks: where people expect a network's numbers, and what is said to each foreseen answer."""

from utils.checks.questions import Choice, Number, Option, Task, wrong_line

# --- Predictions ------------------------------------------------------------------------------------------------------

WHY_LOST = Choice(
    "training/tensors/predict-why-lost",
    "The tensor has the same shape at both steps. What moved its values so far to the left?",
    (
        Option(
            "The learning rate had fallen to almost 0, and the gradient with it",
            "The learning rate multiplies the gradient later, in the optimizer. It makes the updates small, but does "
            "not change the gradients.",
        ),
        Option(
            "The gradient faded on its way back through the layers",
            "The gradient of the logits is the first that the backward pass computes. It has not passed through any "
            "layer yet.",
        ),
        Option(
            "Rounding errors built up over the steps",
            "The run is in float32, and each step computes this tensor afresh. It carries no error from one step to "
            "the next.",
        ),
        Option(
            "The network learned, and now gives nearly every wrong token a tiny probability",
            "The gradient of a wrong token's logit is the probability of that token, divided by the number of "
            "positions. The better the network, the smaller that probability.",
            True,
        ),
    ),
    predict=True,
)
OTHER_NETWORK = Choice(
    "training/tensors/predict-other-network",
    "The DistilBERT starts from random weights as well, and learns to classify film reviews. What happens, from the "
    "first step to the last, to the share of its activation gradients that float16 would lose?",
    (
        Option(
            "It rises: a better network makes smaller mistakes",
            "At the outputs of the head that is true, but only by a little. What reaches the layers below is also "
            "multiplied by the derivatives in between, and their product grew by more.",
        ),
        Option(
            "It falls: the derivatives between a layer and the loss grow",
            "What reaches a layer is the mistake at the output, multiplied by the derivatives of everything between. "
            "In this network the second factor grew by more than the first one shrank.",
            True,
        ),
        Option(
            "It stays about the same: the batch and the number of classes stay the same",
            "Those two fix the gradient of the logits before anything is learned. What reaches the layers depends on "
            "the weights as well, and those change.",
        ),
    ),
    predict=True,
)
SECOND_LAYER = Choice(
    "training/tensors/predict-second-layer",
    "In the DistilBERT's second layer, more than three quarters of the activation gradients are exactly 0 in float32, "
    "at every step; in its first layer, hardly any are. Why?",
    (
        Option(
            "They underflow in float32",
            "The smallest positive float32 is 2^-149. The smallest non-zero values of this layer lie around "
            "2^-46, a hundred binades higher.",
        ),
        Option(
            "Short texts are padded, and nothing is learned from the padding",
            "Padding does make exact zeros, but in both layers alike. These reviews are nearly all cut to full length.",
        ),
        Option(
            "The classifier reads only the first position of the last layer",
            "What the last layer computes at other positions reaches the loss only through the first position's "
            "attention, as keys and values. Every other output there has a gradient of exactly 0.",
            True,
        ),
        Option(
            "The activation function is flat for negative inputs",
            "A ReLU is, and it makes such zeros in the head. But both layers use the same GELU, whose derivative is "
            "exactly 0 almost nowhere.",
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

PLAY_FLOAT16 = Number(
    "training/tensors/play-float16",
    "Take the activation gradients of layer 1 at step 1, as the widget opens. What is the smallest scale 2^k with "
    "which float16 makes less than 1 % of them 0? Give k.",
    answer="8",
    says="With 2^8 = 256 it loses 0.54 %. With 2^7 it is still 1.05 %.",
    wrong={
        "256": "That is the scale itself, and it is right. Give its exponent, k.",
        "7": "Nearly: with 2^7 float16 still loses 1.05 %.",
        "128": "That is a scale, not its exponent, and it still loses 1.05 %.",
        "9": "With 2^9 it loses 0.28 %. A smaller scale is enough.",
        "512": "That is a scale, not its exponent, and a smaller one is enough.",
        "-8": "The window moves to the left, but that is a larger scale, so k is positive.",
        "5": "5 is enough for all layers together at step 143. Go back to layer 1 at step 1.",
        "26": "That is the largest scale without overflow. The question asks for the smallest that loses under 1 %.",
    },
    within={"10 to 25": "That is enough, but a smaller scale is, too."},
    otherwise="Press × 2 until the sentence below the picture says less than 1 %, and read k at the window.",
    hints=(
        "Each press of × 2 moves the window one binade to the left, and roughly halves the share lost.",
        "With 2^6 float16 loses 2.05 %. Go on from there.",
    ),
)
PLAY_E5M2 = Number(
    "training/tensors/play-e5m2",
    "Choose E5M2, all layers and step 143. The five rows show every kind of tensor under the same window. What is the "
    "smallest scale 2^k with which each of the five loses less than 1 % and none overflows? Give k.",
    answer="13",
    says="The activation gradients need 2^13, and the activations overflow from 2^15 on. So 2^13 and 2^14 suit all "
    "five, as far as the range goes.",
    wrong={
        "14": "With 2^14 all five fit. A smaller scale is enough.",
        "12": "Nearly: with 2^12 the activation gradients still lose 1.05 %.",
        "15": "With 2^15 some activations overflow. Go back.",
        "8192": "That is the scale itself, and it is right. Give its exponent, k.",
        "16384": "That is a scale, not its exponent, and a smaller one is enough.",
        "7": "7 is what the updates need. Another row loses far more there.",
        "21": "That is the largest scale for the activation gradients. The activations overflow long before it.",
        "-13": "The window moves to the left, but that is a larger scale, so k is positive.",
    },
    otherwise="With E5M2, all layers and step 143, move the window until no row says 1 % or more.",
    hints=(
        "The activation gradients lie lowest. Move the window until they lose less than 1 %, then look at the others.",
        "With 2^12 the activation gradients lose 1.05 %, and with 2^15 the activations overflow.",
    ),
)
PLAY_E4M3 = Number(
    "training/tensors/play-e4m3",
    "Choose E4M3 and the activation gradients of all layers at step 143. Press “largest without overflow”. What share "
    "still becomes 0?",
    answer="16.6",
    unit="%",
    says="One value in six is lost at the largest scale that E4M3 allows: its window is narrower than this hill.",
    wrong={
        "14": "2^14 is the scale that the button finds. Read the share that becomes 0.",
        "43.3": "That share becomes subnormal. It loses bits, but does not become 0.",
        "38.6": "That share was already zero in float32, so it is not lost.",
        "0.166": "Right as a share. The field asks for percent.",
        "100": "That is without a scale: nearly all of them. Press the button first.",
        "99.98": "That is without a scale. Press the button first.",
        "59.9": "That includes the subnormal values, which are not lost.",
        "55.2": "That adds the values that were zero before, but the two shares are of different wholes.",
        "0.32": "That is for E5M2, which has one more exponent bit. Choose E4M3.",
        "0": "Look at the sentence below the picture: it names the share that becomes zero.",
    },
    otherwise="Choose E4M3, activation gradients, all layers and step 143, press the button, and read the sentence.",
    hints=("Make four choices: format, kind, layers, step. Then press the button.",),
    within={"15.5 to 18": "Nearly. The bars are too coarse for this: read the sentence below the picture."},
    tolerance=0.03,  # 17 and 16.62 are read off as well
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------

EDGE = Number(
    "training/tensors/the-edge",
    "The 32,000 tokens of a vocabulary are equally probable, and the loss is the mean over all 256 × 1,024 tokens of a "
    "batch. How many powers of two is the gradient of a wrong token's logit below 2^-25? Take 32,000 as 2^15.",
    answer="8",
    says="p/N = 2^-15 / 2^18 = 2^-33, eight binades below the edge. As the model learns, most tokens get a smaller p.",
    wrong={
        "33": "2^-33 is the gradient. How far below 2^-25 is that?",
        "-33": "That is the exponent of the gradient. How far below -25 is it?",
        "-8": "The distance is right, but it needs no sign: the question already says “below”.",
        "9": "That is the distance from 2^-24, the smallest float16. The edge is half of that: 2^-25 becomes 0.",
        "7": "Count again: 2^-33 times 2 is 2^-32. How many doublings lead to 2^-25?",
        "256": "Yes, 2^-33 is 256 times too small. Which power of two is that?",
        "19": "That is the distance from 2^-14, where the subnormals begin. They are not lost yet.",
        "18": "256 × 1,024 is 2^18, the number of positions. The gradient is p / N.",
        "-7": "That leaves out p. The gradient is p / N, with p = 2^-15.",
        "0": "That counts one text of 1,024 tokens. The mean is over all tokens of all 256 texts.",
        "-2": "That counts only the 256 texts. The mean is over all their tokens.",
        "10": "That leaves 256 out of N, or counts from another edge. N = 256 × 1,024 = 2^18, and the edge is 2^-25.",
    },
    otherwise="The gradient is p / N, with p = 2^-15 and N = 256 × 1,024. Compare its exponent with -25.",
    hints=("256 is 2^8 and 1,024 is 2^10, so N is 2^18.", "p / N = 2^-15 / 2^18. Subtract the exponents."),
    tolerance=0.01,  # for 7.97, which is what 32,000 itself gives
)
SHARE_LOST = Number(
    "training/tensors/share-lost",
    "A million values: 700,000 are zero in float32, and float16 makes 9,000 more of them zero. Of the values that "
    "could be lost, what share is lost?",
    answer="3",
    unit="%",
    says="9,000 of the 300,000 that were not zero. The other 700,000 had nothing to lose.",
    wrong={
        "0.03": "Right as a share. The question asks for percent: multiply by 100.",
        "0.9": "That is the share of all values. 700,000 of them are zero already and cannot be lost.",
        "0.009": "A share of all values, and not in percent. 700,000 of them are zero already and cannot be lost.",
        "70.9": "That is the share of zeros after the cast. Most of them were there before.",
        "0.709": "That counts all zeros after the cast, and not in percent. Most of them were there before.",
        "70": "That is what was zero before any cast.",
        "1.2857": "9,000 of 700,000: that divides by the zeros. Divide by the others.",
        "1.2694": "9,000 of 709,000 says what share of the zeros is new. What share of the values is lost?",
        "3.0928": "That divides by what is left afterwards, 291,000. Divide by what was there before the cast.",
        "97": "That is what float16 keeps.",
        "9000": "That is how many are lost. Divide by the number that could be lost.",
    },
    otherwise="Divide the 9,000 by the number of values that were not zero in float32.",
    hints=("1,000,000 - 700,000 values can be lost.", "9,000 / 300,000, in percent."),
    tolerance=0.001,
)

# --- Find the bug on the page -----------------------------------------------------------------------------------------

WRONG_LINE = wrong_line(
    "training/tensors/wrong-line",
    text="These lines run during float16 training with a loss scale. The share that they print is far too small. Press "
    "the line with the bug.",
    code="""\
scaler.scale(loss).backward()
g = model.head.weight.grad.float()
g = g[g.isfinite() & (g != 0)]
lost = (g.half() == 0).float().mean()
print(f"without a loss scale, float16 would lose {lost:.1%}")""",
    line=2,
    says="This gradient is still multiplied by the loss scale, which lifts it into the window. Divide by "
    "`scaler.get_scale()` in float32 first. What the float16 backward pass has already lost shows only in a "
    "run in float32 or bfloat16.",
    replies={
        1: "Float16 training does differentiate the scaled loss. The next line has to take the scale into account.",
        3: "Zeros have nothing to lose, and infinities and NaN belong to no binade. That is right.",
        4: "The cast itself decides what becomes 0, ties included. That is right.",
        5: "Printing the share in percent is right. The share itself is wrong.",
    },
)

# --- Exercises in code ------------------------------------------------------------------------------------------------

FLUSHED_SHARE = Task(
    "training/tensors/flushed-share",
    "Write `flushed_share`: the share of the non-zero values that a format makes zero after scaling.",
)
SMALLEST_SCALE = Task(
    "training/tensors/smallest-scale",
    "Write `smallest_scale`: the smallest of 1.0, 2.0, 4.0, ... that keeps 99.9 % of a tensor in float16, or None.",
)
EXPONENT_COUNTS = Task(
    "training/tensors/exponent-counts",
    "Find the bug: fix a histogram of exponents. It gets three kinds of values wrong.",
)
