"""What `training/training_loop` asks: units and lives in a training step, and what is said to each foreseen answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

STOPPED = Choice(
    "training/training_loop/predict-stopped",
    "From one step on the weights never move again. Which line is it?",
    (
        Option(
            "`norm = ... / t.scaler.get_scale()`: the norm is measured before `unscale_`",
            "The division by S makes it the true norm: finite as long as the gradients are. It is what the loop does "
            "with the answer.",
        ),
        Option(
            "`return`: the lines below it are left out, and not the optimizer's alone",
            "Among them is `update`, the only line that lowers the scale. It stays where gradients overflow.",
            True,
        ),
        Option(
            "`clip_grad_norm_`: the gradients are clipped to nothing",
            "It stands behind `unscale_`, where the limit of 1.0 means what it says. And it never makes zero of a "
            "gradient.",
        ),
        Option(
            "`t.schedule.step()`: the learning rate has become zero",
            "A schedule that moves with each step taken is what we want. Here it stands still with everything else.",
        ),
    ),
    predict=True,
)
FIRST_SYMPTOM = Choice(
    "training/training_loop/predict-first-symptom",
    "In a float16 loop with a scaler somebody forgets `zero_grad`. When does the run show it?",
    (
        Option(
            "At once: the gradients pile up, and the loss goes off",
            "Without a scaler they would. With one, `unscale_` divides what is left over from the last step by S.",
        ),
        Option(
            "Slowly: the loss is a little worse than it should be",
            "What is left over is divided by S, in every step: a part in 260,000. No loss shows that.",
        ),
        Option(
            "At the first overflow, and then in every step",
            "Until then the rest is divided away. An infinity is not: it stays in `.grad`, and every step is skipped.",
            True,
        ),
        Option(
            "Never: the scaler repairs it",
            "It divides the rest by S, as if it did. Which number stays what it is when it is divided?",
        ),
    ),
    predict=True,
)
PAST_THE_SCALER = Choice(
    "training/training_loop/predict-past-the-scaler",
    "Somebody writes `optimizer.step()` in place of `scaler.step(optimizer)`, so that all gradients are 2^18 times too "
    "large. With SGD the loss becomes NaN. What does it do with AdamW, in these 80 steps?",
    (
        Option(
            "It becomes NaN as well, a little later",
            "NaN comes with the first gradient that overflows, since nobody looks for it. At a scale of 2^18, which "
            "nobody raises, none does here.",
        ),
        Option(
            "It falls, but more slowly",
            "Look at Adam's step, m/√v. What becomes of it when every gradient is multiplied by the same number?",
        ),
        Option(
            "It falls as in the right loop",
            "Adam's step is m/√v: a factor that all gradients share stands above and below, and cancels.",
            True,
        ),
        Option(
            "It stays where it is: the clip makes the steps too short",
            "No clip stands in this loop. And Adam divides by the size of the gradients, long or short.",
        ),
    ),
    predict=True,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------

UNITS = {
    "after backward": Number(
        "training/training_loop/units-backward",
        "S = 1024, and the true gradient of the only weight is 0.5. What is in `.grad` after "
        "`scaler.scale(loss).backward()`?",
        answer="512",
        says="The loss was multiplied by 1024, and so was every gradient.",
        wrong={
            "0.5": "That is the true gradient. The loss was multiplied by S before the backward pass.",
            "1024": "That is S. The gradient is 0.5 times that.",
            "2048": "The gradient is multiplied by S, not S divided by it.",
            "1/2048": "The scale multiplies here. It divides in `unscale_`.",
        },
        otherwise="By the chain rule each gradient is S times what it was.",
        hints=(
            "`scale(loss)` returns the loss times S.",
            "What does the chain rule make of a factor on the loss?",
            "Nothing has divided by S yet.",
        ),
    ),
    "after unscale_": Number(
        "training/training_loop/units-unscale",
        "And after `scaler.unscale_(optimizer)`?",
        answer="0.5",
        says="The true gradient again, in units of 1.",
        wrong={
            "512": "`unscale_` has divided it by S.",
            "1/2048": "It was 512, not 0.5, when it was divided.",
            "1": "It is not made 1: it is divided by S.",
        },
        otherwise="512, divided by S.",
        hints=(
            "It undoes what `scale` has done.",
            "It works on what `backward` has left in `.grad`.",
            "The result is in units of 1.",
        ),
    ),
    "then clipped to 0.25": Number(
        "training/training_loop/units-clip",
        "And after `clip_grad_norm_(weights, 0.25)`?",
        answer="0.25",
        says="The norm 0.5 is above the limit, so it becomes the limit.",
        wrong={
            "0.5": "The limit is 0.25, and the norm is above it.",
            "0.125": "The norm becomes the limit. It is not multiplied by it.",
            "256": "Nothing is in units of S any more.",
            "1/4096": "Nothing is in units of S any more: `unscale_` has been called once.",
        },
        otherwise="A norm above the limit becomes the limit.",
        hints=(
            "In which units is `.grad` now?",
            "The norm of a single number is its size.",
            "A norm below the limit stays; a norm above it becomes the limit.",
        ),
        near=0.0,
    ),
    "clipped to 0.25, then unscale_": Number(
        "training/training_loop/units-clip-first",
        "The other way round: `.grad` is clipped to 0.25 right after `backward`, then `unscale_`. What is in it?",
        answer="2^-12",
        says="0.25 / 1024 = 2^-12, 2,048 times too small.",
        wrong={
            "0.25": "It was clipped to 0.25 while it was in units of S. What does `unscale_` do to it then?",
            "0.5": "The limit acted on 512, which is well above it.",
            "256": "`unscale_` divides by S.",
            "1/2048": "That is 0.5 / 1024. The clip came first and left 0.25.",
        },
        otherwise="The clip makes 0.25 of 512. Then it is divided by 1024.",
        hints=(
            "The clip does not know in which units a gradient is.",
            "What is in `.grad` after `backward` is far above the limit.",
            "`unscale_` divides, whatever it finds.",
        ),
        tolerance=1e-6,
    ),
    "second step without zero_grad": Number(
        "training/training_loop/units-no-zero",
        "Without clipping, and without `zero_grad`: what is in `.grad` after `unscale_` in the second step?",
        answer="1025/2048",
        says="(0.5 + 512) / 1024 = 0.50048828125: the rest of the first step, divided by S.",
        wrong={
            "1": "0.5 is left over, and `backward` adds 512, not 0.5. Then all of it is divided.",
            "512.5": "That is before `unscale_`.",
            "0.5": "Almost: 0.5 was left in it from the first step. What has `unscale_` made of that?",
            "1024": "0.5 was left over from the first step, since `unscale_` has divided it.",
            "0.50097656": "The rest is 0.5, not 1: (0.5 + 512) / 1024.",
        },
        otherwise="0.5 is left from the first step, `backward` adds 512, and `unscale_` divides the sum.",
        hints=(
            "`backward` adds to `.grad`. It does not replace it.",
            "What the first step has left is in units of 1, what is added is in units of S.",
            "`unscale_` divides the whole sum.",
        ),
        tolerance=1e-7,
        near=0.0,
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

CAREFUL_STEP = Task(
    "training/training_loop/careful-step",
    "Find the bug: mend the careful step of the puzzle, which never comes down from a scale that is too high.",
)
ACCUMULATED_STEP = Task(
    "training/training_loop/accumulated-step",
    "Find the bug: mend a step over several parts of a batch, so that all of them count alike.",
)
TWO_OPTIMIZERS = Task(
    "training/training_loop/two-optimizers",
    "Find the bug: mend a step with two optimizers and one scaler, whose second gradient is now and then twice too "
    "large.",
)
ACCUMULATE = Task(
    "training/training_loop/accumulate",
    "Write `accumulate`: the gradient of the mean over all tokens of a batch, from parts of unequal size.",
)
RESUME = Task(
    "training/training_loop/resume",
    "Write `save` and `restore`, so that a training that was stopped goes on to the same last bit.",
)
