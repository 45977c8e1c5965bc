"""What `your_machine` asks: its predictions, and the answers that people really give to its exercises."""

from utils.checks.questions import Choice, Option, Task

SLOWER_FORMAT = Choice(
    "your_machine/slower-format",
    "What can make one 16-bit format slower to multiply than the other?",
    (
        Option("It moves more bytes.", "Both are 16 bits wide: the same bytes, half of those of float32."),
        Option("It takes more operations.", "A product takes 2n³ operations, in any format."),
        Option(
            "No instruction multiplies it.",
            "Then each number is widened, multiplied in float32 and rounded back, at any cost in time.",
            right=True,
        ),
        Option(
            "It has more exponent bits to work on.",
            "An exponent is only added. What takes room on a chip is to multiply significands, and it has fewer bits.",
        ),
    ),
    predict=True,
)
STEP_GAIN = Choice(
    "your_machine/step-gain",
    "Suppose a machine multiplies four times as fast in bfloat16 as in float32. How much faster is a whole training"
    " step in bf16-mixed?",
    (
        Option("less than four times", "Only the products gain that much; the rest of the step does not.", right=True),
        Option("four times", "Only if a step were nothing but large products. The optimizer and the casts remain."),
        Option("more than four times", "Half the bytes help beside the products, but by a factor of two at most."),
    ),
    predict=True,
)
THREE_CELLS = Task(
    "your_machine/three-cells", "I have predicted the three cells, and held them against the grid below."
)
TRUE_WEIGHTS = "With 16-bit weights small updates are rounded away. Keep float32 weights: that is what mixed means."
NOT_SCALED = "bfloat16 has the exponents of float32: its gradients do not underflow, so there is nothing to scale."
PICKS = {
    "T4": Choice(
        "your_machine/recipe-t4",
        "The recipe on the T4:",
        (
            Option("16-mixed", "Its tensor cores take float16 and no other 16-bit format.", right=True),
            Option(
                "bf16-mixed",
                "A T4 runs bfloat16 emulated (compute capability 7.5). Which 16-bit format do its tensor cores take?",
            ),
            Option("32-true", "It works, and leaves the tensor cores idle. Which 16-bit format do they take?"),
            Option("16-true", TRUE_WEIGHTS),
        ),
    ),
    "A100": Choice(
        "your_machine/recipe-a100",
        "The recipe on the A100, and on the H200:",
        (
            Option(
                "16-mixed", "It works, and costs a loss scaler. Their tensor cores also take a format that needs none."
            ),
            Option("bf16-mixed", "16 bits to multiply, float32 to keep, and no loss scaler.", right=True),
            Option(
                "32-true",
                "It works, and leaves most of the card idle. Its tensor cores take a 16-bit format with the range of"
                " float32.",
            ),
            Option("bf16-true", TRUE_WEIGHTS),
        ),
    ),
    "CPU": Choice(
        "your_machine/recipe-cpu",
        "The recipe on the CPU:",
        (
            Option("16-mixed", "It has f16c, which converts float16 and does not multiply it. What does it multiply?"),
            Option(
                "bf16-mixed",
                "No flag of it names bf16. There is f16c, which converts float16 and no more. What is native to it?",
            ),
            Option("32-true", "It multiplies float32 natively, and no narrower format.", right=True),
        ),
    ),
    "loss scaler": Choice(
        "your_machine/loss-scaler",
        "Which of the four need a loss scaler?",
        (
            Option("the T4", "16-mixed is its recipe, and float16 gradients underflow below 2**-24.", right=True),
            Option("the T4, A100 and H200", NOT_SCALED),
            Option("all four", "In float32 and in bfloat16 the gradients do not underflow. A scaler is for float16."),
            Option("none", "One of these recipes computes in float16, and float16 gradients underflow below 2**-24."),
        ),
    ),
}
RATE = Task("your_machine/rate", "I have worked out the rate of my own machine.")
BFLOAT16_NATIVE = Task("your_machine/multiplies-bfloat16", "My `multiplies_bfloat16` is right for all twelve machines.")
