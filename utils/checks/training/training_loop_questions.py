"""What `training/training_loop` asks: units and lifetimes in a training step, and what is said to each answer."""

from dataclasses import replace

from utils.checks.questions import Choice, Number, Option, Task, wrong_line

# --- Predictions ------------------------------------------------------------------------------------------------------

STOPPED = replace(
    wrong_line(
        "training/training_loop/predict-stopped",
        text="After one of the steps, the weights never move again. Press the line that is to blame.",
        code="""\
optimizer.zero_grad()
scaler.scale(loss).backward()
norm = get_total_norm([w.grad for w in weights])
norm = norm / scaler.get_scale()
if not norm.isfinite():
    return
scaler.unscale_(optimizer)
clip_grad_norm_(weights, 1.0)
scaler.step(optimizer)
scaler.update()
schedule.step()""",
        line=6,
        says="It skips every line below it, including `update`, the only line that lowers S. So S stays at a value "
        "where gradients overflow, and every later step returns here too.",
        replies={
            1: "This line is right, and it is reached in every step, so no gradient is left from the previous step.",
            2: "This line is right: it scales the loss, and with it every gradient.",
            3: "This is the norm of gradients that are S times too large. The next line divides by S.",
            4: "This division gives the true norm, so the loop asks the right question. What does it do next?",
            5: "The question is right: infinite gradients must not reach the weights. What does the loop do next?",
            7: "This line comes before the clip, as it should. The norm above was divided by S separately.",
            8: "The limit acts on unscaled gradients here, and clipping makes no finite gradient zero.",
            9: "This line would skip a step with an infinite gradient by itself. Is it reached in such a step?",
            10: "This line is needed in every step, and it is correct. Is it reached in every step?",
            11: "The schedule advances once for each step taken, as it should. It stops because the steps stop.",
        },
    ),
    predict=True,
)
PAST_THE_SCALER = Choice(
    "training/training_loop/predict-past-the-scaler",
    "One loop goes straight from `scaler.scale(loss).backward()` to `optimizer.step()` and `schedule.step()`. It has "
    "no `unscale_`, no clipping and no `update`, so all gradients are 2^18 times too large. With SGD the loss becomes "
    "NaN. What happens with AdamW in these 80 steps?",
    (
        Option(
            "The loss becomes NaN as well, a little later",
            "It would become NaN after an overflow, because nothing checks for one. But this loop never raises S, and "
            "at 2^18 no gradient overflows here.",
        ),
        Option(
            "The loss falls, but more slowly",
            "Adam's step is m/√v, where m is a running mean of the gradients and v of their squares. What happens to "
            "it when every gradient is multiplied by the same number?",
        ),
        Option(
            "The loss falls as in the right loop",
            "Adam's step is m/(√v + ε), where m is a running mean of the gradients and v of their squares. A factor "
            "that all gradients share appears in m and in √v, and cancels as long as √v is far above ε.",
            True,
        ),
        Option(
            "The loss stays level, because Adam divides by something far too large",
            "Adam divides by √v, where v is a running mean of the squared gradients, and √v is indeed 2^18 times too "
            "large. But what does it divide?",
        ),
    ),
    predict=True,
)
NARROW_SUM = Choice(
    "training/training_loop/predict-narrow-sum",
    "The weights are bfloat16. A batch has 512 parts, and each adds a gradient of exactly 3 to `.grad`. What is in "
    "`.grad` at the end?",
    (
        Option(
            "1536",
            "1536 is a bfloat16 number, but the sum never reaches it. `.grad` has the dtype of the weight, and the sum "
            "is rounded after each part.",
        ),
        Option(
            "256",
            "From 256 on, bfloat16 numbers are 2 apart. That would stop a sum of ones, but adding 3 still moves it.",
        ),
        Option(
            "1024",
            "From 1024 on, bfloat16 numbers are 8 apart. 3 is less than half of that, so 1024 + 3 is rounded back to "
            "1024, and so are all sums after it.",
            True,
        ),
        Option(
            "3",
            "`backward` adds to `.grad` instead of replacing it. What happens to the sum as it grows?",
        ),
    ),
    predict=True,
)
NO_SCALER = Choice(
    "training/training_loop/predict-no-scaler",
    "A float16 run is stopped halfway and resumed. Everything is restored except the scaler, which starts again with "
    "its initial S. S is a power of two. Does the run end with the same weights?",
    (
        Option(
            "Yes: S cancels in `unscale_`, and a power of two is divided out exactly",
            "S does cancel in every step that is taken. But which steps are taken depends on S.",
        ),
        Option(
            "No: different digits of each gradient are rounded away",
            "A power of two changes only the exponent, so digits are lost only if S is so small that gradients become "
            "subnormal in float16. In this run it is not: the losses after the restart agree to the last bit at first.",
        ),
        Option(
            "No: different steps overflow, so different steps are skipped",
            "The new S is too large for different batches than the old S was. So the resumed run skips a step that the "
            "other run took, or takes a step that the other run skipped.",
            True,
        ),
        Option(
            "No: the schedule begins again with its warm-up",
            "The schedule was restored. It counts the steps that were taken.",
        ),
    ),
    predict=True,
)

# --- Tasks under the widget -------------------------------------------------------------------------------------------

LIMIT_TIMES_S = Number(
    "training/training_loop/play-limit",
    "Begin with 16-mixed, no overflow, a norm of 0.5, S = 65536 and a limit of 1. Press `clip before unscale_`, then "
    "raise the limit. What is the smallest limit at which the true gradients come through unchanged?",
    answer="32768",
    says="The clip sees 0.5 * 65536 = 32768. If the clip comes too early, a limit of 1 would have to be a limit of S, "
    "and S changes during the run.",
    wrong={
        "0.5": "That is the true norm. Which norm does the clip see when nothing has been divided by S?",
        "1": "Then `unscale_` leaves a norm of 2^-16: almost nothing of the gradient comes through.",
        "65536": "That is S. It is enough, but not the smallest: the norm is 0.5.",
        "65504": "That is float16's largest number. `.grad` is float32, and the clip looks only at its norm.",
        "131072": "That is S / 0.5. The clip sees the norm times S.",
        "15": "That is the exponent. Give the limit itself.",
        "2^-16": "A lower limit cuts more. Raise the limit.",
        "2^-17": "That is 0.5 / 65536. Before `unscale_` the norm is multiplied by S.",
    },
    within={
        "32000 to 32767.9999": "That is close, but this limit still changes the gradients a little: the sentence below "
        "the buttons says by which factor.",
        "32768.0001 to 131071": "Nothing is cut at this limit, but it is not the smallest such limit.",
    },
    near=0.0,
    otherwise="Press the `clip` block: it says which norm it sees. A limit changes nothing if the norm is not above "
    "the limit.",
    hints=(
        "Which norm does the clip see when it comes first?",
        "A limit changes nothing if the norm is at most the limit.",
    ),
)
WARM_UP_AHEAD = Number(
    "training/training_loop/play-warm-up",
    "Set S to 2^20, let a gradient overflow, and press `always advance the scheduler`. A run begins at this S, and its "
    "gradients overflow until S has come down to 1024. How many steps ahead is its learning rate when the weights move "
    "for the first time?",
    answer="10",
    says="Each skipped step halves S, and 2^20 / 2^10 is ten halvings.",
    wrong={
        "1024": "That is the factor between the two scales. How many halvings is that?",
        "20": "S does not fall to 1. It stops at 1024 = 2^10.",
        "9": "Count the halvings: 2^20, 2^19, ..., 2^10. There is one skipped step between each value and the next.",
        "11": "There are 11 powers of two from 2^20 to 2^10, but one halving fewer.",
        "6": "That is the answer for S = 65536. Set S to 2^20.",
        "1": "That is one step. S has to be halved again and again until it fits.",
    },
    otherwise="Each overflow halves S once. How many overflows does it take to reach 1024?",
    hints=(
        "The sentence below the buttons of the widget says what one such step does to S and to the schedule.",
        "How often can you halve 2^20 before you reach 2^10?",
    ),
)
WITHOUT_SCALER = Number(
    "training/training_loop/play-bfloat16",
    "Switch from 16-mixed to bf16-mixed, with `clip` on and nothing broken. How many blocks does the step lose?",
    answer="4",
    says="`scale`, `unscale_`, `check` and `update` are gone. The other blocks keep their order.",
    wrong={
        "5": "The second batch is greyed out too, but 16-mixed does not have it either unless you accumulate.",
        "3": "Count the check too: nothing looks for infinities any more.",
        "2": "More than `scale` and `unscale_`: which other blocks belong to the scaler?",
        "7": "Those are the blocks that bf16-mixed keeps. Count the greyed-out ones.",
    },
    otherwise="Compare the blocks that are greyed out in the two recipes.",
    hints=("A greyed-out block is not in this step.", "Switch back to 16-mixed: which block is greyed out there too?"),
)

# --- Exercises --------------------------------------------------------------------------------------------------------

UNITS = {
    "after backward": Number(
        "training/training_loop/units-backward",
        "S = 256, and the true gradient of the only weight is 2 in every step. What is in `.grad` after "
        "`scaler.scale(loss).backward()`?",
        answer="512",
        says="The loss was multiplied by 256, and so was every gradient.",
        wrong={
            "2": "That is the true gradient. The loss was multiplied by S before the backward pass.",
            "256": "That is S. The gradient is 2 times that.",
            "128": "The gradient is multiplied by S. S is not divided by the gradient.",
            "1/128": "The scale multiplies here. It divides in `unscale_`.",
            "9": "That is the exponent: give the gradient itself.",
        },
        otherwise="By the chain rule, each gradient becomes S times as large.",
        hints=(
            "`scale(loss)` returns the loss times S.",
            "What does the chain rule do with a factor in the loss?",
            "Nothing has divided by S yet.",
        ),
    ),
    "after unscale_": Number(
        "training/training_loop/units-unscale",
        "And after `scaler.unscale_(optimizer)`?",
        answer="2",
        says="The true gradient again, in units of 1.",
        wrong={
            "512": "`unscale_` has divided it by S.",
            "1/128": "`.grad` was 512, not 2, when it was divided.",
            "1": "The gradient is divided by S. Dividing it by its own size is what AdamW does.",
            "256": "That is S. `.grad` is divided by it.",
        },
        otherwise="`unscale_` divides what `backward` left in `.grad` by S.",
        hints=(
            "`unscale_` undoes what `scale` did.",
            "It works on what `backward` left in `.grad`.",
            "The result is in units of 1.",
        ),
    ),
    "then clipped to 0.5": Number(
        "training/training_loop/units-clip",
        "And after `clip_grad_norm_(weights, 0.5)`?",
        answer="0.5",
        says="The norm of 2 is above the limit, so it is reduced to the limit.",
        wrong={
            "2": "The limit is 0.5, and the norm is above it.",
            "1": "The norm is reduced to the limit, not multiplied by it.",
            "128": "That is 0.5 times S. Nothing is in units of S any more.",
            "1/512": "Nothing is in units of S any more: `unscale_` has been called once.",
            "4": "The norm is reduced to the limit, not divided by it.",
        },
        otherwise="A norm above the limit is reduced to the limit.",
        hints=(
            "Which units is `.grad` in now?",
            "The norm of a single number is its absolute value.",
            "A norm below the limit stays as it is; a norm above the limit is reduced to it.",
        ),
        tolerance=1e-5,
        near=0.0,
    ),
    "clipped to 0.5, then unscale_": Number(
        "training/training_loop/units-clip-first",
        "Now the other way round: `.grad` is clipped to 0.5 right after `backward`, and then `unscale_` is called. "
        "What is in `.grad`?",
        answer="2^-9",
        says="0.5 / 256 = 2^-9, a thousandth of the true gradient.",
        wrong={
            "0.5": "It was clipped to 0.5 while it was in units of S. What does `unscale_` do to it then?",
            "2": "The limit acted on 512, which is well above it.",
            "128": "`unscale_` divides by S.",
            "1/128": "That is 2 / 256. The clip came first and left 0.5.",
            "512": "That is what the clip finds. The clip reduces it to 0.5, and then `unscale_` divides.",
            "-9": "That is the exponent. Give the gradient itself.",
        },
        otherwise="The clip reduces 512 to the limit. Then `unscale_` divides by 256.",
        hints=(
            "The clip does not know which units a gradient is in.",
            "What is in `.grad` after `backward` is far above the limit.",
            "`unscale_` divides whatever it finds.",
        ),
        tolerance=1e-5,
    ),
    "no clip, no zero_grad: after the second unscale_": Number(
        "training/training_loop/units-no-zero",
        "Without clipping, and without `zero_grad`: what is in `.grad` after `unscale_` in the second step?",
        answer="257/128",
        says="(2 + 512) / 256 = 2.0078125: what is left from the first step is divided by S as well.",
        wrong={
            "4": "2 is left over, and `backward` adds 512, not 2. Then the whole sum is divided.",
            "514": "That is before `unscale_`.",
            "2": "Nearly: 2 was left in it from the first step. What did `unscale_` do to that 2?",
            "1024": "Only 2 was left over from the first step, because `unscale_` had divided it.",
            "516/256": "What is left over is 2, not 4: it was unscaled in the first step.",
        },
        otherwise="2 is left from the first step, `backward` adds 512, and `unscale_` divides the sum.",
        hints=(
            "`backward` adds to `.grad` instead of replacing it.",
            "What the first step left is in units of 1; what `backward` adds is in units of S.",
            "`unscale_` divides the whole sum.",
        ),
        tolerance=1e-7,
        near=0.002,
    ),
}
TWO_OPTIMIZERS = wrong_line(
    "training/training_loop/two-optimizers",
    text="Two networks that are trained against each other (a GAN) have two optimizers and one scaler. In some steps, "
    "the gradients of the second optimizer are twice as large as they should be; in others, they are half as large. No "
    "error is raised. Press the line that is to blame.",
    code="""\
first.zero_grad()
second.zero_grad()
scaler.scale(loss).backward()
scaler.step(first)
scaler.update()
scaler.step(second)
scaler.update()""",
    line=5,
    says="If a gradient of `first` overflows, this line halves S; after enough good steps, it doubles S. The gradients "
    "of `second` still carry the old S, but are then divided by the new one. `update` ends the step, so call it once, "
    "after both optimizers.",
    replies={
        1: "The first optimizer starts without old gradients.",
        2: "The second optimizer starts without old gradients too.",
        3: "One backward pass gives the gradients of both, with the same S.",
        4: "This line unscales the gradients of `first`, and skips its step if one of them is infinite.",
        6: "This line divides by the current S. Has S changed since `backward`?",
        7: "One `update` at the end of the step is right.",
    },
)
METRIC = Number(
    "training/training_loop/stalled-metric",
    "An evaluation in batches of 64 adds the number of right answers in each batch to a bfloat16 tensor, `total`. At "
    "the end, it prints `total.item() / 100_000`, because there are 100,000 samples. The model is right about all of "
    "them. What accuracy does it print, as a fraction of 1?",
    answer="0.16384",
    says="From 16384 on, bfloat16 numbers are 128 apart. Adding 64, half of that, gives a tie, which goes to 16384, "
    "the even neighbour. So the total stalls there, after 256 batches. Count in int64.",
    wrong={
        "1": "bfloat16 has 8 significant bits. Can the total reach 100,000 in steps of 64?",
        "0.00256": "A total stalls at 256 if each addend is 1. Here each addend is 64.",
        "0.00257": "A total stalls near 256 if each addend is 1. Here each addend is 64.",
        "0.32768": "At 32768 the gap is 256. Is 64 enough to move the total when the gap is 128?",
        "0.08192": "From 8192 on the gap is 64, so adding 64 still moves the total.",
        "16384": "That is the total. Divide it by the number of samples.",
        "0.1640625": "Nearly, but `total.item()` is a Python number, so the quotient is not rounded to bfloat16. Give "
        "all five digits.",
        "0.99968": "That counts all full batches. But can bfloat16 hold the total after each of them?",
        "0.99840": "100,000 rounded to bfloat16 is 99,840. But does the total ever reach it?",
        "0.16448": "That is one batch more. 16384 + 64 is a tie: which neighbour does it go to?",
    },
    within={"16.3 to 16.5": "That is a percentage. Give it as a fraction of 1, with all its digits."},
    otherwise="An addend is lost if it is less than half the gap at the total, or exactly half if the total is even. "
    "At which total does the gap become 128?",
    hints=(
        "bfloat16 has 8 significant bits: from 128 to 256 its gap is 1, and it doubles at each power of two.",
        "Which gap is too wide for an addend of 64? A tie goes to the neighbour whose last bit is 0.",
    ),
    tolerance=0.0005,
    near=0.004,
)
ACCUMULATED_EPOCH = Task(
    "training/training_loop/accumulated-epoch",
    "Fix an epoch of accumulated steps so that every group of parts counts, including the smaller one at the end.",
)
ACCUMULATE = Task(
    "training/training_loop/accumulate",
    "Write `accumulate`, which computes the gradient of the mean over all tokens of a batch from parts whose token "
    "counts come too late.",
)
RESUME = Task(
    "training/training_loop/resume",
    "Write `save` and `restore` so that a training run that was stopped resumes bit for bit.",
)
