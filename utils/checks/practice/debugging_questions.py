"""What `practice/debugging` asks: where a NaN was born, which recipe suits, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

WHERE_BORN = Choice(
    "practice/debugging/predict-where-born",
    "Where was this NaN born?",
    (
        Option(
            "In the attention: a score grew beyond the range of the format",
            "bfloat16 has the range of float32. Nothing in this network comes near its end.",
        ),
        Option(
            "In the loss: it cannot bear a network that is so sure",
            "It got better and better, and that is what broke it.",
            True,
        ),
        Option(
            "In the backward pass: a gradient overflowed",
            "The gradients have the exponents of float32, too. And the loss was NaN before there was a gradient.",
        ),
        Option(
            "In the optimizer: a step was too long",
            "The weights were finite in the step whose loss is NaN, and the losses before it fell smoothly.",
        ),
    ),
    predict=True,
)
IN_FLOAT32 = Choice(
    "practice/debugging/predict-in-float32",
    "The same loss on the same logits in float32. Does it become NaN?",
    (
        Option("No: float32 has enough digits", "It has more of them: 24. Below 1 its numbers end as well."),
        Option(
            "Yes, but only for logits that are further apart",
            "Each digit more moves the place a little further away. It does not remove it.",
            True,
        ),
        Option("Yes, at the same logits: the formula is wrong", "The formula is the same. The grid below 1 is not."),
    ),
    predict=True,
)
BY_HOOKS = Choice(
    "practice/debugging/predict-by-hooks",
    "The hunter that you built looks at every module. What does it name in the run of the puzzle?",
    (
        Option("The classifier, whose logits are too far apart", "They are finite, and so it has done nothing."),
        Option(
            "Nothing in the step in which the loss becomes NaN", "The loss is computed outside of all modules.", True
        ),
        Option("The whole model", "Its inputs are finite, and so are its logits."),
    ),
    predict=True,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------

EXP, LOG, SQRT, SOFTMAX, UPDATE = "exp", "log", "sqrt, backward", "softmax", "the update"
_LATER = {  # what is said to a plausible echo
    EXP: "The exponential gets finite numbers here and gives finite ones.",
    LOG: "The logarithm, if there is one, gets a positive number here.",
    SQRT: "Is there a root in these lines, and does its backward pass run?",
    SOFTMAX: "A softmax of finite numbers is finite: it takes the largest out first.",
    UPDATE: "The weights are not touched before something else is broken here.",
}


def _birth(name: str, lines: str, right: str, why: str, **says: str) -> Choice:
    operations = {"exp": EXP, "log": LOG, "sqrt": SQRT, "softmax": SOFTMAX, "update": UPDATE}
    special = {operations[key]: text for key, text in says.items()}
    options = (
        Option(operation, why if operation == right else special.get(operation, hint), operation == right)
        for operation, hint in _LATER.items()
    )
    return Choice(
        f"practice/debugging/birth-{name}", f"Which operation is the birth?\n```\n{lines}\n```", tuple(options)
    )


BIRTHS = {
    "a softmax by hand": _birth(
        "a-softmax-by-hand",
        "x = torch.tensor([12.0, 11.0]).half()\ne = x.exp()\np = e / e.sum()",
        EXP,
        "The exponential of 12 is beyond 65504. The division makes NaN of the infinity: that is its echo.",
        softmax="These lines are a softmax by hand, without the largest taken out; torch's own is not called. Which of "
        "its operations is it?",
    ),
    "equal twins": _birth(
        "equal-twins",
        "d = (a - b).square().sum().sqrt()  # a equals b\n(d + 1).backward()",
        SQRT,
        "The root of 0 is 0, and its slope there is infinite: 0 times infinity.",
    ),
    "a row of padding": _birth(
        "a-row-of-padding",
        "s = scores.masked_fill(padding, -torch.inf)\nw = s.softmax(-1)  # a row is padding alone",
        SOFTMAX,
        "The infinity is meant, and in other rows it does no harm. The softmax of a row without anything else is NaN.",
    ),
    "a sure network": _birth(
        "a-sure-network",
        "p = torch.sigmoid(torch.tensor(8.0).bfloat16())\nloss = -(1 * p.log() + 0 * (1 - p).log())",
        LOG,
        "p is 1 in bfloat16, and the logarithm of 1 - p is minus infinity. Zero times that is NaN.",
    ),
    "a step of Adam": _birth(
        "a-step-of-adam",
        "w = torch.ones(1, dtype=torch.float16, requires_grad=True)\nw.grad = torch.zeros_like(w)\n"
        "torch.optim.Adam([w], foreach=False).step()",
        UPDATE,
        "Gradient and weight are finite. The update is 0 / (0 + 1e-8), and 1e-8 is 0 in float16.",
        sqrt="There is a root in Adam, of v. It is 0 here, and nothing runs backward through it.",
    ),
}

MIXED_16, MIXED_BF16, TRUE_BF16, TRUE_32 = "16-mixed", "bf16-mixed", "bf16-true", "32-true"
_NAMES = (MIXED_16, MIXED_BF16, TRUE_BF16, TRUE_32)


def _recipe(name: str, text: str, right: str, says: dict[str, str]) -> Choice:
    options = tuple(Option(name, says[name], name == right) for name in _NAMES)
    return Choice(f"practice/debugging/recipe-{name}", f"{text}: which recipe?", options)


T4 = "fine-tune DistilBERT on a T4"
A100 = "train GPT-2 on an A100 of 80 GB"
H100 = "let LLaMA 7B write on an H100"
CPU = "fine-tune DistilBERT on a CPU without 16-bit products"
NARROW = "fine-tune LLaMA 7B on one card of 48 GB that multiplies bfloat16"
RECIPES = {
    T4: _recipe(
        "t4",
        T4,
        MIXED_16,
        {
            MIXED_16: "Its tensor cores take float16 and no bfloat16.",
            MIXED_BF16: "torch would emulate bfloat16 on a T4: more work, and no tensor cores.",
            TRUE_BF16: "A T4 has no bfloat16 products, and small updates would be lost on top of that.",
            TRUE_32: "It works, and leaves the tensor cores idle.",
        },
    ),
    A100: _recipe(
        "a100",
        A100,
        MIXED_BF16,
        {
            MIXED_16: "It works, with a loss scaler. This card has a 16-bit type that needs none.",
            MIXED_BF16: "Range of float32 without a loss scaler, float32 weights for small updates, and it fits.",
            TRUE_BF16: "From scratch, most updates of a bfloat16 weight are rounded away. There is room for float32.",
            TRUE_32: "The card multiplies 16 bits at 16 times the rate of float32.",
        },
    ),
    H100: _recipe(
        "h100",
        H100,
        TRUE_BF16,
        {
            MIXED_16: "Mixed means float32 weights: a token would read twice the bytes, and round them to 16 bits.",
            MIXED_BF16: "The right type. But mixed means float32 weights, and a token would read twice the bytes.",
            TRUE_BF16: "There are no updates to lose, and a token reads every weight once: half of the bytes.",
            TRUE_32: "A token reads every weight once. These are twice the bytes.",
        },
    ),
    CPU: _recipe(
        "cpu",
        CPU,
        TRUE_32,
        {
            MIXED_16: "Each product would be widened and rounded back, with a loss scaler on top.",
            MIXED_BF16: "Each product would be widened to float32 and rounded back.",
            TRUE_BF16: "Each product would be widened to float32 and rounded back, and updates lost.",
            TRUE_32: "It computes in float32 anyway; casts would be work without a gain.",
        },
    ),
    NARROW: _recipe(
        "narrow",
        NARROW,
        TRUE_BF16,
        {
            MIXED_16: "Float32 weights and gradients alone are 54 GB, and float16 has no use for such a card.",
            MIXED_BF16: "Float32 weights and gradients alone are 54 GB, whatever the moments have.",
            TRUE_BF16: "Two bytes for a weight and two for its gradient, and moments in 8 bits: 42 GB with a little "
            "for the activations. Fine-tuning often survives what is lost; watch the share of lost updates.",
            TRUE_32: "Float32 weights and gradients alone are 54 GB.",
        },
    ),
}

EXPECTED = Number(
    "practice/debugging/expected-memory",
    "bf16-mixed with AdamW, 1.3 billion parameters, all of autocast's copies, no activations: how many GB?",
    answer="1.3 * 18",
    says="4 for the weight, 4 for its gradient, 8 for two moments, 2 for the copy.",
    wrong={
        "1.3e9 * 18": "That is bytes; the answer is asked in GB.",
        "1.3 * 16": "That leaves out what autocast makes: a bfloat16 copy of each weight.",
        "1.3 * 8": "That is bf16-true. In bf16-mixed weights, gradients and moments are float32.",
        "1.3 * 12": "Adam keeps two moments for each weight, not one.",
        "1.3 * 2": "That is the copy alone.",
        "1.3 * 10": "Two moments of 4 bytes are 8, and the gradient has as many bytes as the weight.",
    },
    otherwise="Write down the bytes of one parameter: weight, gradient, two moments, copy. Then times 1.3.",
    hints=("Autocast changes no weight, no gradient and no moment: they are float32.",),
    tolerance=0.01,
    unit="GB",
)

# --- Exercises in code ------------------------------------------------------------------------------------------------

FIRST_BAD = Task("practice/debugging/first-bad", "Write a hunter that names the first module, and leaves no hook.")
SURE_LOSS = Task("practice/debugging/sure-loss", "Mend the loss of the puzzle for networks that are sure.")
