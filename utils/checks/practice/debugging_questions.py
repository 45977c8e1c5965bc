"""What `practice/debugging` asks: where a NaN is born, which recipe suits, and what is said to each answer."""

from utils.checks.questions import Choice, Number, Option, Task, wrong_line

# --- Predict, then run ------------------------------------------------------------------------------------------------

IN_FLOAT32 = Choice(
    "practice/debugging/predict-in-float32",
    "Suppose this loss is computed in float32 instead, while the network grows more and more confident. What happens?",
    (
        Option(
            "It becomes NaN at a larger z, near 17, where p rounds to 1",
            "Below 1, float32 numbers are denser, so p reaches 1 later, but it does reach 1.",
            True,
        ),
        Option(
            "It becomes NaN at a much larger z, near 89, where `exp(z)` overflows",
            "The exponential in p is that of −z, which becomes small. p rounds to 1 long before anything overflows.",
        ),
        Option(
            "It becomes NaN at the same z, because the formula is wrong",
            "The formula is the same, but the numbers just below 1 are not: float32 has more of them.",
        ),
        Option(
            "It never becomes NaN: 24 significant bits are enough",
            "They move the point at which p rounds to 1. They do not remove it.",
        ),
    ),
    predict=True,
)
IN_BACKWARD = Choice(
    "practice/debugging/predict-in-backward",
    "In which of the six is the NaN born in the backward pass?",
    (
        Option("In A", "The loss of that step is NaN, so the forward pass had it before there was a gradient."),
        Option(
            "In B",
            "Close: the first loss and the first gradients are finite. What comes after them in a step?",
        ),
        Option("In C", "The loss of the last step is NaN, so the forward pass had it before there was a gradient."),
        Option("In D", "The first loss is NaN, so the forward pass had it before there was a gradient."),
        Option(
            "In E",
            "The loss is finite, and after this step the weights are not. In float32, Adam's epsilon is not 0. That "
            "leaves the backward pass.",
            True,
        ),
        Option("In F", "With padding, the first loss is NaN already, before any backward pass has run."),
    ),
    predict=True,
)
BY_ANOMALY = Choice(
    "practice/debugging/predict-by-anomaly",
    "Anomaly detection names a function. In how many of the six runs "
    "is it the function of the birth, or of the operation right after it?",
    (
        Option("In all six", "In four of them the NaN is older than the backward pass, which is all that it watches."),
        Option("In four", "In four of them it names the start of the backward pass, far from the birth."),
        Option("In two", "In A, where the birth is in the loss, and in E, where it is in the backward pass.", True),
        Option("In none", "If the birth is in the loss or in the backward pass, it comes within one operation of it."),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

PLAY_LEVER = Choice(
    "practice/debugging/play-two-gpus",
    "Fine-tune LLaMA 7B on one H100 with 8 texts of 2,048 tokens, then on two. Which lever is no longer pulled?",
    (
        Option("Checkpointing", "It computes the same gradient, so it is still tried before a second GPU is used."),
        Option(
            "8-bit Adam",
            "Two GPUs halve weights, gradients and moments, so nothing has to be rounded to make it fit.",
            True,
        ),
        Option(
            "The batch in parts",
            "It computes the same gradient up to rounding, if weighted by label counts, so it comes first with any "
            "number of GPUs.",
        ),
        Option("LoRA", "One H100 does not need it either: it is tried only if 8-bit Adam and bfloat16 fail."),
    ),
)
PLAY_TOTAL = Number(
    "practice/debugging/play-two-a100",
    "Now take two A100s with 40 GB each. How many GB are used on each of them?",
    answer="35.7",
    says="In bf16-mixed with 8-bit Adam. A single one would have to train adapters instead.",
    wrong={
        "15.5": "That is one A100, which trains LoRA adapters. Set the number of cards to 2.",
        "71.4": "That is both together.",
        "69.8": "That is one GPU with 80 GB. Set the memory to 40 and the number of cards to 2.",
        "55.9": "Those are two GPUs with 80 GB. Set the memory to 40.",
        "36": "Of 40 GB, 36 may be used, because a tenth is left to spare. How much is used, to one decimal?",
        "40": "That is what the card has. How much of it is used?",
    },
    otherwise="Choose fine-tune, the A100, 40 GB, 2 cards, LLaMA 7B and 8 texts of 2,048 tokens. Read the verdict.",
    tolerance=0.001,
    unit="GB",
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------

EXP, LOG, SQRT, SOFTMAX, UPDATE = "exp", "log", "sqrt, backward", "softmax", "the update"
_LATER = {  # what is said to an operation that is not in these lines
    EXP: "These lines write no exponential.",
    LOG: "These lines have no logarithm.",
    SQRT: "Is there a root in these lines, and does a backward pass go through it?",
    SOFTMAX: "These lines call no softmax.",
    UPDATE: "Something else breaks before any weight is updated here.",
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
        "The exponential of 12 is beyond 65504. The NaN comes from the division, which is an echo.",
        softmax="These lines write a softmax out, without subtracting the largest; torch's own is not called. Which of "
        "the operations is it?",
    ),
    "a constant row": _birth(
        "a-constant-row",
        "x = torch.ones(4, requires_grad=True)\ny = x / (x.var().sqrt() + 1)\ny.sum().backward()",
        SQRT,
        "The variance is 0, and the root of 0 is 0, but its slope there is infinite.",
    ),
    "a causal mask": _birth(
        "a-causal-mask",
        "seen = torch.ones(4, 4).tril(-1).bool()\nw = scores.masked_fill(~seen, -torch.inf).softmax(-1)",
        SOFTMAX,
        "The −∞ is intended, so it counts as an input. The first row has nothing else, and its softmax is NaN.",
        exp="The softmax has one inside, but it is not written in these lines.",
    ),
    "a cross-entropy by hand": _birth(
        "a-cross-entropy-by-hand",
        "x = torch.tensor([0.0, 20.0]).half()\nloss = -x.softmax(-1).log()[0]",
        LOG,
        "The softmax rounds 2e-9 to 0, which is finite. The logarithm of 0 is −∞.",
        softmax="It returns 0 and 1, and both are finite.",
        exp="The softmax subtracts the largest score first, so its exponentials are at most 1.",
    ),
    "a step of SGD": _birth(
        "a-step-of-sgd",
        "w = torch.tensor([65_000.0]).half().requires_grad_()\nw.grad = torch.tensor([-30_000.0]).half()\n"
        "torch.optim.SGD([w], lr=0.1).step()",
        UPDATE,
        "Weight and gradient are finite, but 65,000 + 3,000 is beyond 65504.",
    ),
}

MIXED_16, MIXED_BF16, TRUE_BF16, TRUE_32 = "16-mixed", "bf16-mixed", "bf16-true", "32-true"
_NAMES = (MIXED_16, MIXED_BF16, TRUE_BF16, TRUE_32)


def _recipe(name: str, text: str, right: str, says: dict[str, str]) -> Choice:
    options = tuple(Option(name, says[name], name == right) for name in _NAMES)
    return Choice(f"practice/debugging/recipe-{name}", f"{text}: which recipe?", options)


T4 = "fine-tune DistilBERT on a T4"
A100 = "train GPT-2 on an A100 of 80 GB"
H100 = "generate text with LLaMA 7B on an H100"
CPU = "fine-tune DistilBERT on a CPU without 16-bit products"
NARROW = "fine-tune all of LLaMA 7B with 8-bit Adam on a 48 GB bfloat16 GPU"
RECIPES = {
    T4: _recipe(
        "t4",
        T4,
        MIXED_16,
        {
            MIXED_16: "Its tensor cores multiply float16, but not bfloat16.",
            MIXED_BF16: "A T4 has no bfloat16 products. Torch emulates them, without the tensor cores.",
            TRUE_BF16: "A T4 has no bfloat16 products, and small updates would be lost as well.",
            TRUE_32: "It works, but leaves the tensor cores idle.",
        },
    ),
    A100: _recipe(
        "a100",
        A100,
        MIXED_BF16,
        {
            MIXED_16: "It works, but needs a loss scaler. This GPU has a 16-bit type that needs none.",
            MIXED_BF16: "Bfloat16 needs no loss scaler, float32 weights keep small updates, and it fits.",
            TRUE_BF16: "Bfloat16 weights round small updates away, and here there is room for float32 weights.",
            TRUE_32: "By its data sheet, this GPU multiplies 16-bit numbers at 16 times the rate of float32.",
        },
    ),
    H100: _recipe(
        "h100",
        H100,
        TRUE_BF16,
        {
            MIXED_16: "Mixed keeps float32 weights, so each token would read twice as many bytes.",
            MIXED_BF16: "The right type, but float32 weights make each token read twice as many bytes.",
            TRUE_BF16: "No update is lost, and each token reads every weight, so fewer bytes mean faster text.",
            TRUE_32: "Each token reads every weight once, and float32 weights have twice as many bytes.",
        },
    ),
    CPU: _recipe(
        "cpu",
        CPU,
        TRUE_32,
        {
            MIXED_16: "Each product would be widened to float32 and rounded back, with a loss scaler on top.",
            MIXED_BF16: "Each product would be widened to float32 and rounded back.",
            TRUE_BF16: "Each product would be widened to float32 and rounded back, and updates lost.",
            TRUE_32: "It computes in float32 anyway, so casts would only add work.",
        },
    ),
    NARROW: _recipe(
        "narrow",
        NARROW,
        TRUE_BF16,
        {
            MIXED_16: "Mixed keeps float32 weights and gradients, and those take 54 GB already.",
            MIXED_BF16: "Float32 weights and gradients alone take 54 GB, whatever the moments take.",
            TRUE_BF16: "Two bytes per weight and two per gradient, with moments in 8 bits, make 42 GB, checkpointed "
            "activations included. Compare a short run with one that keeps small updates.",
            TRUE_32: "Float32 weights and gradients alone take 54 GB.",
        },
    ),
}

EXPECTED = Number(
    "practice/debugging/expected-memory",
    "bf16-mixed with AdamW, 1.3 billion parameters, all of autocast's copies, no activations: how many GB?",
    answer="1.3 * 18",
    says="4 for the weight, 4 for its gradient, 8 for two moments, 2 for the copy.",
    wrong={
        "1.3e9 * 18": "Those are bytes; the question asks for GB.",
        "1.3e9 * 18 / 2^30": "Those are GiB. One GB is a billion bytes.",
        "1.3 * 16": "That is 16 bytes per parameter. Either autocast's copy of the weight is missing, or the gradient "
        "is counted in 2 bytes; in bf16-mixed it has 4.",
        "1.3 * 14": "That is 14 bytes per parameter. Either the gradient is missing, or one of Adam's two moments.",
        "1.3 * 8": "That would be bf16-true. In bf16-mixed, weights, gradients and moments are float32.",
        "1.3 * 12": "That is 12 bytes per parameter. Compare your list: weight, gradient, two moments, copy.",
        "1.3 * 4": "That is one float32 number per parameter. What else is kept besides the weight?",
        "1.3 * 2": "That is the copy alone.",
        "1.3 * 10": "Two moments of 4 bytes are 8, and the gradient takes as many bytes as the weight.",
    },
    otherwise="Write down the bytes per parameter: weight, gradient, two moments, copy. Then multiply by 1.3.",
    hints=("Autocast changes no weight, no gradient and no moment: they are float32.",),
    tolerance=0.01,
    unit="GB",
)

# --- Exercises in code ------------------------------------------------------------------------------------------------

LAYER_ERRORS = Task(
    "practice/debugging/layer-errors",
    "Compare a model with its copy in a narrow dtype, layer by layer.",
)
HUNTER = """\
def first_bad(model, x):
    found = []
    for name, module in model.named_modules():
        def look(module, inputs, output):
            given = kinds(inputs)
            if given <= {"-Inf"} and kinds(output) - given:
                found.append(name)
        module.register_forward_hook(look)
    model(x)
    return found[0] if found else None"""
WRONG_LINE = wrong_line(
    "practice/debugging/hunter-line",
    text="Which line makes it name the last module?",
    code=HUNTER,
    line=7,
    says="The function reads `name` when the hook runs. By then the loop is over, and `name` is the last one for all.",
    replies={
        1: "A model and an input are what it needs.",
        2: "All hooks share this list, so that the first entry is the first in time.",
        3: "This yields every module with its path, the model itself included.",
        4: "Torch passes a hook the module, its positional inputs and its output. A fix may go here, but which line "
        "reads the wrong name?",
        5: "These are the inputs that the module itself got.",
        6: "This is the rule: the output has a kind that the inputs lack, and they have at most a mask's −∞.",
        8: "Each module gets its own function. What that function reads is another question.",
        9: "The forward pass runs the hooks.",
        10: "The first entry is the first in time, and None means that all is well.",
    },
)
FIRST_BAD = Task("practice/debugging/first-bad", "Fix the hunter so that it names the birth and removes its own hooks.")
