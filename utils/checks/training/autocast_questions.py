"""What `training/autocast` asks: what people expect of autocast, and the reply to each foreseen answer."""

from utils.checks.questions import Choice, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

STALE = Choice(
    "training/autocast/predict-stale",
    "In the second run the weights move, but the loss stays the same to the last digit. Why?",
    (
        Option(
            "The gradients are too small for the loss to show a change",
            "The norm grows visibly in both runs, and in the first the loss falls from 8.8 to 0.9.",
        ),
        Option(
            "Every forward pass uses the weights of step 1; no forward pass reads the weights that move",
            "Six equal losses mean that the products got the same numbers six times, not the weights that moved.",
            True,
        ),
        Option(
            "The weights are stored in bfloat16, so the steps are rounded away",
            "Weights in bfloat16 do lose steps, but these are float32, and the norm shows that they change.",
        ),
        Option(
            "The training is right; only the printed loss is old",
            "Each printed loss is computed in its own step. What is old is the network that it is computed with.",
        ),
    ),
    predict=True,
)
SHARED = Choice(
    "training/autocast/predict-shared-gradient",
    "The weight is float32, and so is its `.grad`. The nine uses are in one region, and `backward()` is called once. "
    "What is in `.grad`?",
    (
        Option(
            "264: the gradients are added in float32, the dtype of the weight",
            "The nine uses share one bfloat16 copy, and their gradients are added there, before the cast to float32.",
        ),
        Option(
            "256: the gradients are added in bfloat16, and the sum is cast to float32",
            "They are added at the shared copy. There 256 + 1 is a tie, which rounds to 256, eight times.",
            True,
        ),
        Option(
            "256: under autocast `.grad` is bfloat16, which cannot hold more digits",
            "The number is right, but the reason is not: `.grad` is float32, and even bfloat16 can hold 264. "
            "Where were the nine gradients added?",
        ),
        Option(
            "8, 9 or another small number: 256 is out of range",
            "bfloat16 reaches 3.4e38. The question is what 256 + 1 is rounded to.",
        ),
        Option(
            "1: each use overwrites the previous gradient",
            "Autograd adds the gradients of all uses. The question is in which dtype.",
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

MATRIX_VECTOR = Choice(
    "training/autocast/play-matrix-vector",
    "Press “CPU and CUDA differ” and look at the products. Which of these is cast down on CUDA, but not on a CPU?",
    (
        Option("`mm`, matrix times matrix", "Both devices cast it down, so it is not among those that differ."),
        Option(
            "`mv`, matrix times vector",
            "On a CPU it is on no list, so the product of float32 inputs is float32 there.",
            True,
        ),
        Option("`einsum`", "It is on no documented list, but the products inside it are cast down on both."),
        Option("`conv1d`", "Convolutions are cast down on both devices."),
    ),
)
SOFTPLUS = Choice(
    "training/autocast/play-softplus",
    "Look up these activations. Which of them runs in float32 on CUDA?",
    (
        Option("`gelu`", "It follows its input on both devices."),
        Option("`sigmoid`", "It follows its input: its values lie between 0 and 1 for any input."),
        Option(
            "`softplus`", "It is log(1 + exp(x)), and logarithms and exponentials are on CUDA's float32 list.", True
        ),
        Option("`silu`", "It follows its input, on CUDA as on a CPU."),
    ),
)
IN_PLACE = Choice(
    "training/autocast/play-in-place",
    "Look up addmm. With float32 matrices a, b and c, what is the dtype of c after `c.addmm_(a, b)` under autocast?",
    (
        Option(
            "float32: the in-place form follows its inputs",
            "A tensor cannot change its dtype in place, so no list has the in-place forms. The product is float32.",
            True,
        ),
        Option(
            "bfloat16: a product is cast down",
            "That is true of `addmm`, which returns a new tensor. See the line below it.",
        ),
        Option(
            "None: a and b become bfloat16, which raises an error",
            "Autocast leaves the in-place form alone and casts nothing.",
        ),
    ),
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------


def _dtype(name: str, text: str, right: str, *, says: str, wrong: str) -> Choice:
    options = (Option(d, says if d == right else wrong, d == right) for d in ("bfloat16", "float32"))
    return Choice(f"training/autocast/what-comes-out{name}", text, tuple(options))


WHAT_COMES_OUT = {
    "h @ w": _dtype(
        "",
        "On a CPU under autocast to bfloat16, h and a square parameter w are float32. What is the dtype of `h @ w`?",
        "bfloat16",
        says="In a product both inputs are cast down, and the result has their new dtype.",
        wrong="Autocast is made for products: both inputs are cast down first.",
    ),
    "torch.relu(h)": _dtype(
        "-relu",
        "`torch.relu(h)`",
        "float32",
        says="relu is on no list, so the result has the dtype of h, float32.",
        wrong="relu is on no list, so it follows its input. Autocast does not cast everything inside the context.",
    ),
    "h @ w + h": _dtype(
        "-sum",
        "`h @ w + h`",
        "float32",
        says="For bfloat16 plus float32, torch's own rule takes the wider of the two, with or without autocast.",
        wrong="The product is bfloat16, but h is float32, and a sum of the two takes the wider dtype.",
    ),
    "torch.softmax(h @ w, -1)": _dtype(
        "-softmax",
        "`torch.softmax(h @ w, -1)`",
        "bfloat16",
        says="softmax is on none of the CPU's lists, so it follows the product, which is bfloat16.",
        wrong="That is right for CUDA, but on a CPU softmax is on no list.",
    ),
    "F.mse_loss(h @ w, h)": _dtype(
        "-loss",
        "`F.mse_loss(h @ w, h)`",
        "float32",
        says="The inputs of a loss are cast to float32 on the CPU too.",
        wrong="Losses are among the few operations that run in float32 on the CPU too.",
    ),
    "w.grad, after backward": _dtype(
        "-gradient",
        "`w.grad`, after the backward pass of that loss",
        "float32",
        says="The cast of w has a derivative: on the way back the gradient is cast to the dtype of w.",
        wrong="The gradient of the bfloat16 copy is bfloat16. On its way to w it passes the cast and becomes float32.",
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

CAST_TO = Task(
    "training/autocast/cast-to",
    "Write `cast_to`: the dtypes in which an operation receives its inputs under a rule of autocast.",
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
    "Write `collect`: sum messages at the places that an index gives, correctly under autocast too.",
)
