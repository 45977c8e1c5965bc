"""What `training/tensors` asks: where people expect a network's numbers, and what is said to each foreseen answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

LOGITS_LOST = Choice(
    "training/tensors/predict-logits-lost",
    "The gradient of the logits at the last step: of its values that are not zero, which share would float16 make 0?",
    (
        Option(
            "Below 5 %, much as at the first step",
            "The network has kept its size, and so has the batch. Its mistakes have not: they have become small, and "
            "this tensor is the mistakes.",
        ),
        Option(
            "5 to 40 %",
            "That would be so if it still doubted more than half of its words at each place. A network that writes "
            "well doubts a few.",
        ),
        Option(
            "40 to 80 %",
            "The direction is right: better means smaller. But each place has one word that is right and hundreds "
            "that are not, and by now nearly all of those are ruled out.",
        ),
        Option(
            "More than 80 %",
            "The gradient of a wrong word is its probability, divided by the number of positions. A network that "
            "writes well gives nearly every word next to nothing.",
            True,
        ),
    ),
    predict=True,
)
WHICH_END = Choice(
    "training/tensors/predict-which-end",
    "Weights, activations, the gradients of both, and the updates, in the middle of the training. One of the five "
    "does not fit into float16. Which, and at which end?",
    (
        Option(
            "The activations, at the upper end: some overflow",
            "Other networks do that. In this one a norm after each block keeps them near 1, and the largest is a "
            "number of one digit.",
        ),
        Option(
            "The weight gradients, at the upper end: gradients explode",
            "Where gradients explode, float32 does not help for long. In a training that works they are small.",
        ),
        Option(
            "The updates, at the lower end: the learning rate is tiny",
            "Adam divides each gradient by its own usual size, so most updates are near the learning rate. While that "
            "is far above 2^-24, float16 holds them. Whether the weight can take them in is another question.",
        ),
        Option(
            "The activation gradients, at the lower end",
            "They are the mistake, shared out over all examples and all positions. A weight's gradient adds up many of "
            "them again, so it lies higher.",
            True,
        ),
        Option(
            "The activation gradients, at the upper end",
            "The right tensors. But the loss is a mean: each of its N numbers gets the Nth part of the mistake.",
        ),
    ),
    predict=True,
)
ALREADY_ZERO = Choice(
    "training/tensors/predict-already-zero",
    'Somebody prints "67 % of the gradients are zero in float16", and wants a loss scale. What do you ask first?',
    (
        Option(
            "How many were zero in float32?",
            "A gradient that is zero in float32 has nothing to lose, and no scale lifts it. Only the others count.",
            True,
        ),
        Option(
            "What was the loss scale?",
            "A scale lifts what is small. So far nobody has shown that anything was: 0 times any scale is 0.",
        ),
        Option(
            "At which step of the training?",
            "A good second question, for the share moves as the network learns. First: the share of what?",
        ),
        Option(
            "Is the network any worse for it?",
            "That decides in the end. But before you look for harm, ask whether float16 has made these zeros at all.",
        ),
    ),
    predict=True,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------

EDGE = Number(
    "training/tensors/the-edge",
    "32,000 words, all equally probable; the loss is the mean over 256 texts of 1,024 tokens. How many powers of two "
    "is the gradient of a wrong word's logit below 2^-25? (Take 32,000 for 2^15.)",
    answer="8",
    says="p/N = 2^-15 / 2^18 = 2^-33, eight binades below the edge. And as the network learns, most words get less.",
    wrong={
        "33": "2^-33 is the gradient. How far below 2^-25 is that?",
        "-33": "That is the exponent of the gradient. How far below -25 is it?",
        "-8": "The distance is right. As a distance below it has no sign.",
        "9": "That is the distance from 2^-24, the smallest float16. The edge is half of it: from 2^-25 down it is 0.",
        "7": "Count again: 2^-33 times 2 is 2^-32. How many doublings lead to 2^-25?",
        "256": "2^-33 is 256 times too small, yes. As a power of two?",
        "19": "That is the distance from 2^-14, where the subnormals begin. They are not lost yet.",
        "18": "256 × 1,024 is 2^18, the number of positions. The gradient is p / N.",
        "-7": "That leaves out p. The gradient is p / N, with p = 2^-15.",
        "0": "That counts one text of 1,024 tokens. The mean is over all tokens of all 256 texts.",
        "-2": "That counts the 256 texts alone. The mean is over all their tokens.",
        "10": "That leaves 256 out of N, or counts from another edge. N = 256 × 1,024 = 2^18, and the edge is 2^-25.",
    },
    otherwise="The gradient is p / N, with p = 2^-15 and N = 256 × 1,024. Compare its exponent with -25.",
    hints=("256 is 2^8 and 1,024 is 2^10, so N is 2^18.", "p / N = 2^-15 / 2^18. Subtract the exponents."),
    tolerance=0.01,  # for 7.97, which is what 32,000 itself gives
)
WHICH_LAYER = {
    "needs it most": Choice(
        "training/tensors/which-layer",
        "The DistilBERT at the first step: which group's activation gradients need a scale most?",
        (
            Option("layer 1", "It loses the largest share of the values that could be lost.", True),
            Option(
                "layer 2",
                "77 % of its values are zero, but they were so before: nothing that happens there reaches the loss. No "
                "scale changes that. Compare what is lost.",
            ),
            Option("head", "Its lowest binade is 2^-14, far above 2^-25: nothing of it is lost."),
        ),
    ),
    "needs none": Choice(
        "training/tensors/which-layer-none",
        "And which one needs none?",
        (
            Option(
                "layer 1", "It reaches far below 2^-25, where float16 ends. That nothing was zero before is no help."
            ),
            Option("layer 2", "Its zeros do no harm, but of the other values float16 loses many."),
            Option("head", "It lies in the normal range as a whole. Its zeros were zero before.", True),
        ),
    ),
}
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
        "1.2694": "9,000 of 709,000 says which part of the zeros is new. What part of the values is gone?",
        "3.0928": "That divides by what is left afterwards, 291,000. Divide by what was there before the cast.",
        "97": "That is what float16 keeps.",
        "9000": "That is how many. The share is asked for: of how many could they be?",
    },
    otherwise="Divide the 9,000 by the number of values that were not zero in float32.",
    hints=("1,000,000 - 700,000 values can be lost.", "9,000 / 300,000, in percent."),
    tolerance=0.001,
)

# --- Exercises in code ------------------------------------------------------------------------------------------------

FLUSHED_SHARE = Task(
    "training/tensors/flushed-share",
    "Write `flushed_share`: of the values that are not zero, the share that a format makes zero after a scale.",
)
SMALLEST_SCALE = Task(
    "training/tensors/smallest-scale",
    "Write `smallest_scale`: the smallest of 1, 2, 4, 8, ... that keeps 99.9 % of a tensor in float16, or None.",
)
EXPONENT_COUNTS = Task(
    "training/tensors/exponent-counts",
    "Find the bug: mend a histogram of exponents. It has two mistakes.",
)
