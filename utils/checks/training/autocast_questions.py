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
            "Weights in bfloat16 do lose steps. These are float32, and the line of norms shows that the steps arrive.",
        ),
        Option(
            "The right one; only the loss that is printed is an old one",
            "The loss is computed anew in each step, and printed from there. It is the network in it that is old.",
        ),
    ),
    predict=True,
)
SHARED = Choice(
    "training/autocast/predict-shared-gradient",
    "The weight is float32, and so is its `.grad`. The nine uses stand in one region, and `backward()` is called once. "
    "What is in `.grad`?",
    (
        Option(
            "264: the gradients are added in float32, as the weight is",
            "The nine uses share one bfloat16 copy, and their gradients meet there, before the cast to float32.",
        ),
        Option(
            "256: they are added in bfloat16, and the sum is cast to float32",
            "They meet at the shared copy. There 256 + 1 is a tie, and goes back to 256, eight times.",
            True,
        ),
        Option(
            "256: a `.grad` under autocast is bfloat16, and cannot hold more digits",
            "The number is right, the reason is not: `.grad` is float32, and even bfloat16 can hold 264. "
            "Where were the nine added?",
        ),
        Option(
            "8, 9 or another small number: 256 is out of range",
            "bfloat16 reaches 3.4e38. The question is which of its neighbours 256 + 1 goes to.",
        ),
        Option(
            "1: each use overwrites the gradient of the last",
            "autograd adds the gradients of all uses. The question is in which dtype.",
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

MATRIX_VECTOR = Choice(
    "training/autocast/play-matrix-vector",
    "Press “CPU and CUDA differ” and look at the products. Which of these does CUDA cast down and a CPU not?",
    (
        Option("`mm`, matrix times matrix", "Both devices cast it down, so it is not among those that differ."),
        Option(
            "`mv`, matrix times vector",
            "On a CPU it is on no list. There a product of float32 inputs stays float32.",
            True,
        ),
        Option("`einsum`", "It is in no list of the documentation, but the products inside it are cast on both."),
        Option("`conv1d`", "Convolutions are cast down on both devices."),
    ),
)
SOFTPLUS = Choice(
    "training/autocast/play-softplus",
    "Look up these activations. Which of them runs in float32 on CUDA?",
    (
        Option("`gelu`", "It follows its input on both devices."),
        Option("`sigmoid`", "It follows its input: its values lie between 0 and 1, whatever comes in."),
        Option("`softplus`", "It is the logarithm of a sum with an exponential, and those are on CUDA's list.", True),
        Option("`silu`", "It follows its input on both devices."),
    ),
)
IN_PLACE = Choice(
    "training/autocast/play-in-place",
    "Look up addmm. Three float32 matrices a, b and c: what is the dtype of c after `c.addmm_(a, b)` under autocast?",
    (
        Option(
            "float32: the in-place form follows its inputs",
            "A tensor cannot change its dtype in place, so no list names these forms. The product runs in float32.",
            True,
        ),
        Option("bfloat16: a product is cast down", "`addmm` is, and gives a new tensor. Look for the line below it."),
        Option("There is an error: a and b are bfloat16 then", "Autocast leaves the in-place form alone: no cast."),
    ),
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
        wrong="Autocast is made for products: both inputs are cast down first.",
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

# --- Exercises in code ------------------------------------------------------------------------------------------------

CAST_TO = Task(
    "training/autocast/cast-to",
    "Write `cast_to`: the dtypes of the inputs as an operation gets to see them under a rule of autocast.",
)
EVALUATE = Task(
    "training/autocast/evaluate",
    "Find the bug: fix an evaluation after which the training stops working.",
)
NO_SECOND_CAST = Task(
    "training/autocast/no-second-cast",
    "Change a layer so that under autocast no activation is cast to float32 and back.",
)
COLLECT = Task(
    "training/autocast/collect",
    "Write `collect`: sum messages by the places that an index names, right under autocast too.",
)
