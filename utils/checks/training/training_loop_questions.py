"""What `training/training_loop` asks: units and lifetimes in a training step, and what is said to each answer."""

from dataclasses import replace

from utils.checks.questions import Choice, Number, Option, Task, wrong_line

# --- Predictions ------------------------------------------------------------------------------------------------------

STOPPED = replace(
    wrong_line(
        "training/training_loop/predict-stopped",
        text="From one step on, the weights never move again. Press the line that is to blame.",
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
        says="It leaves out every line below it, and one of them is `update`, the only line that lowers S. So S stays "
        "where gradients overflow, and every later step returns here too.",
        replies={
            1: "This line is right, and it is reached in every step: nothing survives from the last one.",
            2: "This line is right: the loss is scaled, and so is every gradient.",
            3: "This is the norm of gradients that are S times too large. The next line divides by S.",
            4: "With this division it is the true norm, so the loop asks the right question. What does it do then?",
            5: "The question is right: such gradients must not reach the weights. What does the loop do then?",
            7: "It comes before the clip, as it should. The norm above was divided by S separately.",
            8: "The limit acts on unscaled gradients here, and clipping never makes a gradient zero.",
            9: "It would skip a step with an infinity by itself. Is it reached in such a step?",
            10: "This line is needed in every step, and it is correct. Is it reached in every step?",
            11: "The schedule moves once for each step taken, as it should. It stops because the steps stop.",
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
            "It becomes NaN as well, a little later",
            "It would after an overflow, because nothing looks for one. But this loop never raises S, and at 2^18 no "
            "gradient overflows here.",
        ),
        Option(
            "The loss falls, but more slowly",
            "Adam's step is m/√v. What happens to it when every gradient is multiplied by the same number?",
        ),
        Option(
            "The loss falls as in the right loop",
            "Adam's step is m/√v. A factor that all gradients share appears in m and in √v, and cancels as long as √v "
            "is far above ε.",
            True,
        ),
        Option(
            "The loss stays level, because v is far too large",
            "v is 2^36 times too large. And m?",
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
            "1536 is a bfloat16 number, but it is never reached. `.grad` has the dtype of the weight, and the sum is "
            "rounded after each part.",
        ),
        Option(
            "256",
            "From 256 on, bfloat16 numbers are 2 apart. That would stop a sum of ones, but 256 + 3 still moves.",
        ),
        Option(
            "1024",
            "From 1024 on, bfloat16 numbers are 8 apart. 3 is less than half of that, so 1024 + 3 is rounded back to "
            "1024, and so are all sums after it.",
            True,
        ),
        Option(
            "3",
            "`backward` adds to `.grad`; it does not replace it. What happens to the sum when it grows?",
        ),
    ),
    predict=True,
)
NO_SCALER = Choice(
    "training/training_loop/predict-no-scaler",
    "A float16 run is stopped half way and resumed. Everything is restored except the scaler, which starts again with "
    "its first S. S is a power of two. Does the run end with the same weights?",
    (
        Option(
            "Yes: S cancels in `unscale_`, and a power of two is divided out exactly",
            "It does cancel, in every step that is taken. Which steps are taken depends on S.",
        ),
        Option(
            "No: other digits of each gradient are rounded away",
            "A power of two changes only the exponent, so digits are lost only if S is so small that gradients become "
            "subnormal in float16. In this run it is not: the losses after the restart agree to the last bit at first.",
        ),
        Option(
            "No: other steps overflow, so other steps are skipped",
            "A new S is too large for other batches than the old one was. A step is skipped that was taken before, or "
            "the other way round.",
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
    says="The clip sees 0.5 * 65536 = 32768. A limit of 1 that comes too early would have to be a limit of S, and S "
    "changes during the run.",
    wrong={
        "0.5": "That is the true norm. Which norm does the clip see, when nothing has been divided by S?",
        "1": "Then `unscale_` leaves a norm of 2^-16: almost nothing of the gradient comes through.",
        "65536": "That is S. It is enough, but not the smallest: the norm is 0.5.",
        "131072": "The norm 0.5 is multiplied by S, not divided by it.",
        "15": "That is the exponent. Give the limit itself.",
        "32767": "The clip sees 32768. A limit just below that still changes the gradients, if only a little.",
        "2^-16": "Lower limits cut more. Raise it.",
        "2^-17": "That is 0.5 / 65536. Before `unscale_` the norm is multiplied by S.",
    },
    otherwise="Press the block of the clip: it says which norm it sees. A limit changes nothing if the norm is not "
    "above it.",
    hints=(
        "Which norm does the clip see when it comes first?",
        "A limit changes nothing if the norm is at most the limit.",
    ),
)
WARM_UP_AHEAD = Number(
    "training/training_loop/play-warm-up",
    "Set S to 2^20, let a gradient overflow, and press `always advance the scheduler`. A run begins at this S, which "
    "must come down to 1024. How many steps ahead is its learning rate when the weights move for the first time?",
    answer="10",
    says="Each skipped step halves S, and 2^20 / 2^10 is ten halvings.",
    wrong={
        "1024": "That is the factor between the two scales. How many halvings are that?",
        "20": "S does not fall to 1. It stops at 1024 = 2^10.",
        "9": "Count the halvings: 2^20, 2^19, ..., 2^10. One skipped step lies between each two.",
        "11": "There are 11 powers from 2^20 to 2^10, and one halving fewer.",
        "6": "That is the answer for S = 65536. Set S to 2^20.",
        "1": "That is one step. S has to be halved again and again until it fits.",
    },
    otherwise="Each overflow halves S once. How often until 1024?",
    hints=("The widget says it in the line below the buttons.", "One skipped step halves S."),
)
WITHOUT_SCALER = Number(
    "training/training_loop/play-bfloat16",
    "Switch from 16-mixed to bf16-mixed, with `clip` on and nothing broken. How many blocks does the step lose?",
    answer="4",
    says="`scale`, `unscale_`, `check` and `update` are gone. The order of the others is the same.",
    wrong={
        "5": "The second batch is greyed out too, but 16-mixed does not have it either unless you accumulate.",
        "3": "Count the check too: nothing looks for infinities any more.",
        "2": "More than `scale` and `unscale_`: which other blocks belong to the scaler?",
        "8": "Those are the blocks that 16-mixed has left. Count the greyed ones.",
    },
    otherwise="Compare the greyed blocks of both recipes.",
    hints=("A greyed block is not in this step.", "Switch back to 16-mixed: which block is greyed there as well?"),
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
            "128": "The gradient is multiplied by S, not S divided by it.",
            "1/128": "The scale multiplies here. It divides in `unscale_`.",
            "9": "That is the exponent: give the gradient itself.",
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
        answer="2",
        says="The true gradient again, in units of 1.",
        wrong={
            "512": "`unscale_` has divided it by S.",
            "1/128": "`.grad` was 512, not 2, when it was divided.",
            "1": "It is divided by S. Dividing it by its own size is what AdamW does.",
            "256": "That is S. `.grad` is divided by it.",
        },
        otherwise="`unscale_` divides what `backward` left in `.grad` by S.",
        hints=(
            "It undoes what `scale` has done.",
            "It works on what `backward` has left in `.grad`.",
            "The result is in units of 1.",
        ),
    ),
    "then clipped to 0.5": Number(
        "training/training_loop/units-clip",
        "And after `clip_grad_norm_(weights, 0.5)`?",
        answer="0.5",
        says="The norm 2 is above the limit, so it becomes the limit.",
        wrong={
            "2": "The limit is 0.5, and the norm is above it.",
            "1": "The norm becomes the limit. It is not multiplied by it.",
            "128": "That is 0.5 times S. Nothing is in units of S any more.",
            "1/512": "Nothing is in units of S any more: `unscale_` has been called once.",
            "4": "The norm becomes the limit. It is not divided by it.",
        },
        otherwise="A norm above the limit becomes the limit.",
        hints=(
            "In which units is `.grad` now?",
            "The norm of a single number is its size.",
            "A norm below the limit stays; a norm above it becomes the limit.",
        ),
        tolerance=1e-5,
        near=0.0,
    ),
    "clipped to 0.5, then unscale_": Number(
        "training/training_loop/units-clip-first",
        "The other way round: `.grad` is clipped to 0.5 right after `backward`, then comes `unscale_`. What is in it?",
        answer="2^-9",
        says="0.5 / 256 = 2^-9, a thousandth of the true gradient.",
        wrong={
            "0.5": "It was clipped to 0.5 while it was in units of S. What does `unscale_` do to it then?",
            "2": "The limit acted on 512, which is well above it.",
            "128": "`unscale_` divides by S.",
            "1/128": "That is 2 / 256. The clip came first and left 0.5.",
            "512": "That is what the clip finds. It leaves 0.5 of it, and then `unscale_` divides.",
            "-9": "That is the exponent. Give the gradient itself.",
        },
        otherwise="The clip turns 512 into its limit. Then `unscale_` divides by 256.",
        hints=(
            "The clip does not know in which units a gradient is.",
            "What is in `.grad` after `backward` is far above the limit.",
            "`unscale_` divides whatever it finds.",
        ),
        tolerance=1e-5,
    ),
    "second step without zero_grad": Number(
        "training/training_loop/units-no-zero",
        "Without clipping, and without `zero_grad`: what is in `.grad` after `unscale_` in the second step?",
        answer="257/128",
        says="(2 + 512) / 256 = 2.0078125: the rest of the first step is divided by S.",
        wrong={
            "4": "2 is left over, and `backward` adds 512, not 2. Then all of it is divided.",
            "514": "That is before `unscale_`.",
            "2": "Nearly: 2 was left in it from the first step. What has `unscale_` made of that?",
            "1024": "2 was left over from the first step, because `unscale_` has divided it.",
            "516/256": "The rest is 2, not 4: it was unscaled in the first step.",
            "258": "Only 512 was divided. `unscale_` divides all of `.grad`, the rest too.",
        },
        otherwise="2 is left from the first step, `backward` adds 512, and `unscale_` divides the sum.",
        hints=(
            "`backward` adds to `.grad`. It does not replace it.",
            "What the first step has left is in units of 1; what is added is in units of S.",
            "`unscale_` divides the whole sum.",
        ),
        tolerance=1e-7,
        near=0.002,
    ),
}
TWO_OPTIMIZERS = wrong_line(
    "training/training_loop/two-optimizers",
    text="Two networks that are trained against each other (a GAN) have two optimizers and one scaler. In some steps "
    "the gradients of the second optimizer are twice too large, in others half as large as they should be. Nothing is "
    "raised. Press the line to blame.",
    code="""\
first.zero_grad()
second.zero_grad()
scaler.scale(loss).backward()
scaler.step(first)
scaler.update()
scaler.step(second)
scaler.update()""",
    line=5,
    says="When `first` overflows, this line halves S; after enough good steps it doubles S. `second` then divides "
    "gradients that carry the old S by the new one. `update` ends the step, so it comes once, after both optimizers.",
    replies={
        1: "The first optimizer starts without old gradients.",
        2: "The second optimizer starts without old gradients too.",
        3: "One backward pass gives the gradients of both, with the same S.",
        4: "It unscales the gradients of `first`, and skips its step if one of them is infinite.",
        6: "It divides by the S that it finds. Has S changed since `backward`?",
        7: "One `update` at the end of the step is right.",
    },
)
METRIC = Number(
    "training/training_loop/stalled-metric",
    "An evaluation in batches of 64 adds the number of right answers of each batch to a bfloat16 tensor. In the end "
    "it divides the total by the number of samples, 100,000. The model is right about all of them. Which accuracy is "
    "printed?",
    answer="0.16384",
    says="From 16384 on, bfloat16 numbers are 128 apart. 64 is half of that, and the tie goes to 16384, the even "
    "neighbor. So the total stalls there, after 256 batches. Count in int64.",
    wrong={
        "1": "bfloat16 has 8 significant bits. Can the total reach 100,000 in steps of 64?",
        "0.00256": "A total stalls at 256 if each addend is 1. Here each addend is 64.",
        "0.00257": "A total stalls near 256 if each addend is 1. Here each addend is 64.",
        "0.32768": "At 32768 the gap is 256. Is 64 enough to move the total when the gap is 128?",
        "0.08192": "From 8192 on the gap is 64, so adding 64 still moves the total.",
        "16384": "That is the total. Divide it by the number of samples.",
        "0.99968": "Those are all full batches. But is each of their sums rounded to itself?",
        "0.99840": "100,000 rounded to bfloat16 is 99,840. But is it ever reached?",
        "0.16448": "That is one batch more. 16384 + 64 is a tie: to which neighbor does it go?",
    },
    otherwise="An addend is lost when it is at most half the gap of the total (exactly half: at an even total). For "
    "which total is the gap 128?",
    hints=(
        "bfloat16 has 8 significant bits: from 128 to 256 its gap is 1, and it doubles at each power of two.",
        "Which gap is too wide for an addend of 64? A tie goes to the neighbor whose last bit is 0.",
    ),
    tolerance=0.0005,
    near=0.004,
)
ACCUMULATED_EPOCH = Task(
    "training/training_loop/accumulated-epoch",
    "Fix an epoch of accumulated steps, so that every group of parts counts, also the smaller one at the end.",
)
ACCUMULATE = Task(
    "training/training_loop/accumulate",
    "Write `accumulate`: the gradient of the mean over all tokens of a batch, from parts whose sizes come too late.",
)
RESUME = Task(
    "training/training_loop/resume",
    "Write `save` and `restore`, so that a training that was stopped goes on to the same last bit.",
)
