"""What `training/autocast` asks: what people expect of autocast, and the reply to each foreseen answer."""

from utils.checks.questions import Choice, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

STALE = Choice(
    "training/autocast/predict-old-copy",
    "The float32 weight starts at 1, and the loss is lowest at 3. The outer context stays open, and each of the six "
    "steps subtracts 1/8 of the gradient. Where does the weight end up?",
    (
        Option(
            "1: it does not move",
            "Only the copy stays at 1. The optimizer subtracts from the float32 weight, which moves in every step.",
        ),
        Option(
            "2.64: it approaches 3, by a quarter of the distance in each step",
            "That is training without the outer context. Here, every gradient is computed at the copy, which stays 1.",
        ),
        Option(
            "3: it stops at the minimum", "The weight is at 3 after four steps. Which gradient does the fifth step get?"
        ),
        Option(
            "3.5: it passes 3",
            "It does pass 3, but 3.5 is where the sixth step begins.",
        ),
        Option(
            "4: it passes 3 and would go on",
            "The gradient at the copy is 2 (1 − 3) = −4 in every step, so each of the six steps adds 0.5.",
            True,
        ),
    ),
    predict=True,
)
SHARED = Choice(
    "training/autocast/predict-shared-gradient",
    "What is in the `.grad` of the float32 weight for the two lists? `backward()` visits the uses in reverse order.",
    (
        Option(
            "264 for both",
            "That is the sum in float32, the dtype of the weight. The gradients are added at the copy, in bfloat16.",
        ),
        Option(
            "256 for both",
            "bfloat16 cannot add 1 to 256, but it can add 8: 264 is one of its numbers. For one of the lists, "
            "the eight ones are added first.",
        ),
        Option(
            "`big_first` 264, `big_last` 256",
            "The last use comes first: 256 + 1 is a tie that rounds to 256, eight times. In the other order the ones "
            "add up to 8, and 8 + 256 is exact.",
            True,
        ),
        Option(
            "`big_first` 256, `big_last` 264",
            "That is the order of the forward pass. In the backward pass, the last use comes first.",
        ),
        Option(
            "`big_first` 1, `big_last` 256",
            "Autograd adds the gradients of all uses. None is lost by being overwritten; some are lost by rounding.",
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
        Option("`einsum`", "It is on no documented list, but the products inside it are cast down on both devices."),
        Option("`conv1d`", "Convolutions are cast down on both devices."),
    ),
)
SOFTPLUS = Choice(
    "training/autocast/play-softplus",
    "Look up these activations. Which of them runs in float32 on CUDA?",
    (
        Option("`gelu`", "It runs in whatever dtype comes in, on both devices."),
        Option("`sigmoid`", "It runs in whatever dtype comes in: its values lie between 0 and 1 for any input."),
        Option(
            "`softplus`",
            "CUDA's float32 list has its name. The formula does not decide: sigmoid and silu contain an exponential "
            "too, and are on no list.",
            True,
        ),
        Option("`silu`", "It runs in whatever dtype comes in, on CUDA as on a CPU."),
    ),
)
IN_PLACE = Choice(
    "training/autocast/play-in-place",
    "Look up addmm. With float32 matrices a, b and c, what is the dtype of c after `c.addmm_(a, b)` under autocast?",
    (
        Option(
            "float32: the in-place form runs in whatever comes in",
            "A tensor cannot change its dtype in place, so in-place forms are on no list. The product is float32.",
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
        says="Both inputs of a product are cast down, and the result has their new dtype.",
        wrong="Autocast is made for products: both inputs are cast down first.",
    ),
    "torch.relu(h)": _dtype(
        "-relu",
        "`torch.relu(h)`",
        "float32",
        says="relu is on no list, so the result has the dtype of h, float32.",
        wrong="relu is on no list, so it runs in the dtype of h. Autocast does not cast everything inside the context.",
    ),
    "h @ w + h": _dtype(
        "-sum",
        "`h @ w + h`",
        "float32",
        says="For bfloat16 plus float32, torch's own rule takes the wider of the two, with or without autocast.",
        wrong="The product is bfloat16, but h is float32, and a sum of the two takes the wider dtype.",
    ),
    "torch.softmax(h @ w + h, -1)": _dtype(
        "-masked-softmax",
        "`torch.softmax(h @ w + h, -1)`",
        "float32",
        says="On a CPU softmax runs in the dtype of its input, here the float32 sum above.",
        wrong="On a CPU softmax is on no list. In which dtype is its input?",
    ),
    "(h @ w).square().mean()": _dtype(
        "-own-loss",
        "`(h @ w).square().mean()`",
        "bfloat16",
        says="`F.mse_loss` is on the CPU's list, but your own formula is not, so nothing casts the product up. On "
        "CUDA, `square` calls `pow`, which is on the float32 list there, and the result is float32.",
        wrong="Autocast looks up the names of operations. Is any of these three on one of the CPU's lists?",
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
UPHILL = Task(
    "training/autocast/uphill",
    "Find the bug: fix a function that should return the gradients one step uphill.",
)
NO_SECOND_CAST = Task(
    "training/autocast/no-second-cast",
    "Change a layer so that under autocast no activation is cast to float32 and back.",
)
COLLECT = Task(
    "training/autocast/collect",
    "Write `collect`: average messages at the places given by an index, correctly even under autocast.",
)
