"""What `training/autocast` asks: what people expect of autocast, and what is said to each foreseen answer."""

from utils.checks.questions import Choice, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

STALE = Choice(
    "training/autocast/predict-stale",
    "In the second loop the weights move and the loss stays the same, to the last digit. Which network is trained?",
    (
        Option(
            "None: the gradients are too small for the loss to show it",
            "The norm changes by some percent, as in the first loop, and there the loss falls from 8.8 to 0.9.",
        ),
        Option(
            "The network of the first step, again and again; what moves are weights that no forward pass reads",
            "Six times the same loss means six times the same numbers in the products. The moved weights are others.",
            True,
        ),
        Option(
            "The right one, but its steps are rounded away when the weights are stored in bfloat16",
            "That was the last chapter. These weights are float32, and the line of norms shows that the steps arrive.",
        ),
        Option(
            "The right one; only the loss that is printed is an old one",
            "The loss is computed anew in each step, and printed from there. It is the network in it that is old.",
        ),
    ),
    predict=True,
)
FIVE_OPERATIONS = Choice(
    "training/autocast/predict-five-operations",
    "Product, softmax, layer norm, sum, cross-entropy: each gets a bfloat16 tensor, on a CPU, under autocast to "
    "bfloat16. Which of the five give float32?",
    (
        Option(
            "None: what comes in as bfloat16 goes out as bfloat16",
            "For four of the five that is so. Losses are cast to float32, on the CPU too.",
        ),
        Option(
            "The cross-entropy alone",
            "Losses are cast to float32. Softmax, norm and sum are on none of the CPU's lists: whatever comes in.",
            True,
        ),
        Option(
            "The softmax and the cross-entropy: those with exponentials",
            "On CUDA both are cast to float32. The CPU's lists are others: of the two, they have the loss alone.",
        ),
        Option(
            "All but the product",
            "You know the lists for CUDA: there it is so. The lists for the CPU are others.",
        ),
        Option(
            "All five: autocast keeps results in float32",
            "Autocast casts the inputs, and the result has the dtype of what was computed. A product gives bfloat16.",
        ),
    ),
    predict=True,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------


def _dtype(name: str, text: str, right: str, *, says: str, wrong: str) -> Choice:
    options = (Option(d, says if d == right else wrong, d == right) for d in ("bfloat16", "float32"))
    return Choice(f"training/autocast/what-comes-out{name}", text, tuple(options))


WHAT_COMES_OUT = {
    "h @ w": _dtype(
        "",
        "On a CPU under autocast to bfloat16, with h and a square parameter w, both float32: the dtype of `h @ w`",
        "bfloat16",
        says="A product: both inputs are cast down, and the result has their dtype.",
        wrong="A product is the one thing that autocast is made for: both inputs are cast down first.",
    ),
    "torch.relu(h)": _dtype(
        "-relu",
        "`torch.relu(h)`",
        "float32",
        says="On no list: whatever comes in, and h is float32.",
        wrong="relu is on no list: whatever comes in. Autocast does not cast everything inside the context.",
    ),
    "h @ w + h": _dtype(
        "-sum",
        "`h @ w + h`",
        "float32",
        says="bfloat16 plus float32: torch's own rule takes the wider of the two, with autocast or without.",
        wrong="The product is bfloat16, but h is float32, and a sum of the two takes the wider dtype.",
    ),
    "torch.softmax(h @ w, -1)": _dtype(
        "-softmax",
        "`torch.softmax(h @ w, -1)`",
        "bfloat16",
        says="On the CPU's lists there is no softmax: whatever comes in, and the product is bfloat16.",
        wrong="That is so on CUDA. On a CPU softmax is on no list.",
    ),
    "F.mse_loss(h @ w, h)": _dtype(
        "-loss",
        "`F.mse_loss(h @ w, h)`",
        "float32",
        says="The losses are cast to float32 on the CPU too.",
        wrong="Losses are among the few operations that are cast to float32 on the CPU too.",
    ),
    "w.grad, after backward": _dtype(
        "-gradient",
        "`w.grad`, after the backward pass of that loss",
        "float32",
        says="The cast of w has a derivative: on the way back the gradient is cast to the dtype of w.",
        wrong="The gradient of the bfloat16 copy is bfloat16. Then it passes the cast, backwards, and arrives at w.",
    ),
}
WHERE_IT_ENDS = Choice(
    "training/autocast/where-it-ends",
    "A loop of one step: (a) forward pass and loss, (b) backward, (c) clip, (d) optimizer step. Which of them belong "
    "inside `autocast`?",
    (
        Option(
            "a",
            "There the dtypes are chosen. Everything after it follows: backward takes the dtypes of the forward "
            "operations, and gradients and weights are float32.",
            True,
        ),
        Option(
            "ab",
            "It runs. But each operation of the backward pass has the dtype that its forward operation had; the "
            "context gives it nothing, and torch advises against it.",
        ),
        Option(
            "abc",
            "Gradients of float32 weights are float32, and clipping is to see them so. What should be cast there?",
        ),
        Option(
            "abcd",
            "The weights and their gradients are float32 and should be updated so. And a context that stays open "
            "from one step to the next keeps the old copies, as in the puzzle.",
        ),
    ),
)

# --- Exercises in code ------------------------------------------------------------------------------------------------

CAST_TO = Task(
    "training/autocast/cast-to",
    "Write `cast_to`: the dtypes of the inputs as an operation gets to see them under a rule of autocast.",
)
EVALUATE = Task(
    "training/autocast/evaluate",
    "Find the bug: mend an evaluation after which the training stops working.",
)
NO_SECOND_CAST = Task(
    "training/autocast/no-second-cast",
    "Change a layer so that under autocast no activation is cast to float32 and back.",
)
COLLECT = Task(
    "training/autocast/collect",
    "Write `collect`: sum messages by the places that an index names, right under autocast too.",
)
