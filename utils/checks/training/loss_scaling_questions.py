"""What `training/loss_scaling` asks: what people expect of a loss scale, and what is said to each foreseen answer."""

from utils.checks.questions import Choice, Number, Option, Task

# --- Predict, then run ------------------------------------------------------------------------------------------------

SHARE_OF_ZEROS = Choice(
    "training/loss_scaling/predict-share-of-zeros",
    "In the float16 run, what share of the weight gradients in the first two layers is exactly zero after the last "
    "step?",
    (
        Option(
            "About a tenth",
            "You would hardly notice a tenth, because most weights would still move. But these two layers learn "
            "nothing.",
        ),
        Option(
            "About half",
            "The other half would still point downhill, so these layers would learn, but more slowly.",
        ),
        Option(
            "Nearly all; a few large ones survive",
            "That is close. But every gradient that reaches these layers has been multiplied by the last layer's "
            "weights, and then even the largest one is below 2^-25. None survives.",
        ),
        Option(
            "All of them",
            "Some gradients survive at the output. On the way down, they are multiplied by the last layer's weights, "
            "which are small, and then even the largest gradient is below 2^-25. Once all gradients are 0, every "
            "layer below gets 0 as well.",
            True,
        ),
    ),
    predict=True,
)
PLATEAU = Choice(
    "training/loss_scaling/predict-plateau",
    "For several values of S, the R² of this network is within 0.05 of the best. If you divide the largest of these "
    "values by the smallest, about what do you get?",
    (
        Option(
            "About 30",
            "Then you would have to choose S with care, and choose it again whenever the gradients change. The range "
            "is wider: float16 covers 40 powers of two, from 2^-24 to 2^16, and these gradients need only part of "
            "them.",
        ),
        Option(
            "About 2,000",
            "The range is wider: float16 covers 40 powers of two, from 2^-24 to 2^16, and the gradients that matter "
            "here need about half of them.",
        ),
        Option(
            "About 500,000",
            "These values go from 2^9 to 2^28. Float16 covers 40 powers of two, and the gradients that matter here "
            "need about half of them, so the rest is room for S.",
            True,
        ),
        Option(
            "More than a billion",
            "That is more than 2^30. It would leave ten powers of two, a factor of a thousand, for the gradients "
            "themselves, but they differ by more than that.",
        ),
    ),
    predict=True,
)
INVERTED = Choice(
    "training/loss_scaling/predict-inverted",
    "A run of 10,000 steps uses this code. Its warm-up takes 500 steps of the schedule, and 12 of the 10,000 steps "
    "overflow. Where is the learning rate at the end?",
    (
        Option(
            "Where it should be: at the end of the schedule",
            "For that, the schedule would have to move after every step that was taken. But after such a step, the "
            "scale is the same or larger, so `<` is false.",
        ),
        Option(
            "Twelve steps short of the end",
            "That is what `>=` would give. After a step that was taken, the scale is the same or larger, so `<` is "
            "false.",
        ),
        Option(
            "4 or 5 steps into the warm-up of 500",
            "The scale grows once every 2,000 good steps, so `>` would give that. Which way does `<` point?",
        ),
        Option(
            "12 steps into the warm-up of 500",
            "The scale falls exactly when a step is skipped, and `<` moves the schedule only then, which happens "
            "twelve times. A run that never overflows keeps its first learning rate forever.",
            True,
        ),
    ),
    predict=True,
)

# --- Play -------------------------------------------------------------------------------------------------------------

RESCUED = Number(
    "training/loss_scaling/play-rescued",
    "1. Stay at step 250, with the gradients of the activations, and drag the loss scale up from 1. What is the "
    "smallest scale at which none of these gradients becomes zero?",
    answer="2^21",
    says="At 2^21, none of them is lost, but the box says that the step would be skipped, because the largest of all "
    "gradients, a weight gradient, overflows. So do not try to save every gradient: at 2^20, fewer than one in ten "
    "thousand is lost, and the step is taken.",
    wrong={
        "21": "21 is the exponent. Give the scale itself, 2^21.",
        "20": "20 is an exponent. At 2^20, the line below the bars still says that a few become zero, less than "
        "0.01 %.",
        "2^20": "At 2^20, less than 0.01 % of them still become zero. What is the first scale at which none does?",
        "2^22": "None becomes zero at 2^22, but none does at half that scale either.",
        "2^16": "At 2^16 a few still become zero, less than 0.01 %. Keep going until the line says that none does.",
    },
    otherwise="Read the line below the picture: at which scale does it first say that none becomes zero?",
    hints=(
        "The box about the step does not matter here; look at the sentence below the bars.",
        "The answer is above 2^16.",
    ),
)
DESCENT = Number(
    "training/loss_scaling/play-descent",
    "2. Set the initial scale to 2^30 and the growth interval to 10. How many steps does the scaler skip before the "
    "first one that it takes?",
    answer="11",
    says="Each halving costs one skipped step, from 2^30 down to 2^19.",
    wrong={
        "12": "Step 12 is the first one that is taken. How many steps come before it?",
        "10": "After ten halvings the scale is 2^20. Move the step slider: is the eleventh step taken?",
        "2000": "2,000 is the default growth interval.",
        "19": "2^19 is the scale of the first step that is taken. How many halvings lead there from 2^30?",
        "30": "Each skipped step halves the scale, but the scale need not fall to 1.",
    },
    otherwise="Move the slider of the training step up from 1 and read the box: what is the first step that is taken?",
    hints=("Each skipped step halves the scale.",),
    near=0.0,
)
OFTEN = Number(
    "training/loss_scaling/play-often",
    "3. Set the initial scale to 2^16 and the growth interval to 2. How many of the 250 steps does the scaler skip?",
    answer="73",
    says="That is nearly a third of the training. With an interval of 2,000, trying a larger scale costs about one "
    "step in 2,000.",
    wrong={
        "29": "That is about the percentage of skipped steps. How many steps is that?",
        "177": "That is how many steps are taken. How many are skipped?",
        "0": "That is the result with PyTorch's interval of 2,000. Set the growth interval to 2.",
    },
    otherwise="The line below the staircase counts the skipped steps. Did you set the initial scale to 2^16, the "
    "growth interval to 2, and the factors to 2 and 0.5?",
    hints=("Press *PyTorch's defaults*, then set the growth interval to 2.",),
    near=0.0,
)

# --- Exercises on paper -----------------------------------------------------------------------------------------------

MEAN_OVER_A_PAGE = {
    "gradient": Number(
        "training/loss_scaling/mean-over-a-page",
        "All 50,000 words are equally probable, and the loss is the mean over 32 texts of 1,024 tokens. The gradient "
        "for the logit of a wrong word:",
        answer="1/50000/32768",
        says="p / N = 1/50,000 / 32,768, about 6.1e-10.",
        wrong={
            "1/50000": "That is the probability. The loss is a mean over 32 × 1,024 tokens, so divide by their number.",
            "1/32768": "That is 1/N. The gradient is the word's probability, divided by N.",
            "-1/32768": "That is nearly the gradient of the right word, (p - 1) / N. That of a wrong word is p / N.",
            "-49999/50000/32768": "That is the gradient of the right word, (p - 1) / N. That of a wrong word is p / N.",
            "49999/50000/32768": "(1 - p) / N is the size of the right word's gradient. That of a wrong word is p / N.",
            "1/50000/32": "The mean is over all 32 × 1,024 tokens, not over the 32 texts.",
            "1/50000/1024": "The mean is over all tokens of all 32 texts, which is 32 × 1,024.",
            "-1/50000/32768": "The size is right. But a wrong word's logit should fall, so its gradient is positive.",
            "1/32768/32768": "The probability is 1/50,000, and 50,000 is not 2^15.",
            "32768/50000": "Divide by N: the loss is a mean, not a sum.",
            "3.302e-4": "That is the loss, log(50,000), divided by N. The gradient is p / N.",
            "2/50000/32768": "A factor of 2 would come from a square, but the cross-entropy has none. The gradient is "
            "p / N.",
        },
        otherwise="The gradient is p / N. What is the probability of one word, and over how many tokens is the mean "
        "taken?",
        hints=("p is 1 / 50,000, the same for every word.", "N = 32 × 1,024 = 32,768."),
        tolerance=0.02,  # 6e-10 is 1.7 % off
        near=0.0,
    ),
    "smallest scale": Number(
        "training/loss_scaling/mean-over-a-page-scale",
        "The smallest power-of-two loss scale that keeps this gradient from becoming zero in float16 (the scale "
        "itself, not its exponent):",
        answer="64",
        says="64 × 6.1e-10 = 3.9e-8 is above 2^-25, so it is rounded up to 2^-24, the smallest float16 number.",
        wrong={
            "6": "64 is 2^6. Give the scale itself, not its exponent.",
            "-6": "A scale above 1 has a positive exponent. Give the scale itself, not its exponent.",
            "1/64": "That makes the gradient smaller. What do you multiply by?",
            "32": "32 × 6.1e-10 = 1.95e-8, which is below 2^-25 = 2.98e-8, so the gradient still becomes 0.",
            "128": "128 is enough, but so is half as much: anything above 2^-25, which is half of the smallest float16 "
            "number, is rounded up to that number.",
            "256": "That is enough, but so is a smaller scale. What is the smallest scale at which the product is "
            "above 2^-25?",
            "131072": "That makes the gradient a normal number, with all its bits. A smaller scale is enough to keep "
            "it above zero.",
            "65536": "That is the usual initial scale. This gradient needs a much smaller one.",
            "1024": "That is more than enough. What is the smallest power of two at which the product is above 2^-25?",
            "1": "6.1e-10 is below 2^-25 = 2.98e-8, so without a scale the gradient becomes 0.",
            "48.8282": "That is the exact factor that leads to 2^-25. What is the next power of two?",
            "97.6564": "That factor leads to 2^-24, the smallest float16 number. But anything above half of it, 2^-25, "
            "is rounded up.",
        },
        otherwise="Multiply 6.1e-10 by 2, 4, 8, ... until the product is above 2^-25 = 2.98e-8, which is halfway from "
        "0 to the smallest float16 number.",
        hints=("In float16, everything up to 2^-25 = 2.98e-8 becomes 0.", "2.98e-8 / 6.1e-10 is 48.8."),
        tolerance=0.002,
        near=0.0,
    ),
}
READ_A_TRACE = {
    "skipped": Number(
        "training/loss_scaling/read-a-trace",
        "A scaler with the default settings starts at 65536. Before step 4 its scale is 8192, before step 2,004 it is "
        "16384, and after step 2,004 it is 8192. How many of these 2,004 steps were skipped?",
        answer="4",
        says="Steps 1, 2 and 3 are skipped. Steps 4 to 2,003 are 2,000 good steps in a row, so the scale grows. Then "
        "step 2,004 is skipped.",
        wrong={
            "2": "A skip halves the scale. How many halvings lead from 65536 to 8192?",
            "3": "Those are the three skips at the start. How did 16384 become 8192 at the end?",
            "1": "That is the skip at the end. How did 65536 become 8192 at the start?",
            "5": "A skip halves the scale, and 2,000 good steps in a row double it. There are three halvings at the "
            "start. How many are there at the end?",
            "2000": "2,000 is the number of steps that were taken in a row.",
            "8": "65536 is 8 times 8192. How many halvings is that?",
        },
        otherwise="The scale is 65536, 32768, 16384 and 8192 at the start. Count the halvings, there and at the end.",
        hints=("65536 / 8192 = 8, which is three halvings in three steps.", "In step 2,004 the scale falls once more."),
    ),
    "last of three": Number(
        "training/loss_scaling/read-a-trace-last-of-three",
        "All later steps are taken, and your log contains the scale only at the start and after step 3,000. Another "
        "run skips exactly three steps, and its log shows the same two numbers. How early can the last of these three "
        "skips come? Give the number of its step.",
        answer="1001",
        says="After step 1,001, there are 1,999 good steps up to step 3,000, one too few for the scale to grow. Skips "
        "in steps 1, 2 and 1,001, for example, give the same log. So this log hides that your run skipped four steps.",
        wrong={
            "1000": "Steps 1,001 to 3,000 would then be 2,000 good steps in a row. The scale would grow in step 3,000, "
            "and the log would show 16384.",
            "3": "Then the scale would grow after the 2,000 good steps from 4 to 2,003, and nothing would lower it "
            "again. The log would show 16384.",
            "2004": "A last skip in step 2,004 gives the same log, but it can come earlier.",
        },
        within={
            "1 to 999": "Then more than 2,000 good steps follow, so the scale grows before the second entry of the "
            "log.",
            "1002 to 3000": "A last skip in this step can give the same log, but it can come earlier.",
        },
        otherwise="Give the number of a step, between 1 and 3,000.",
        hints=(
            "The log shows 8192 after step 3,000. With three skips, how often may the scale have grown by then?",
            "The scale grows after 2,000 good steps in a row. Count the good steps after the last skip.",
        ),
        near=0.0,
    ),
}

# --- Exercises in code ------------------------------------------------------------------------------------------------

CLIPPED_STEP = Task(
    "training/loss_scaling/clipped-step",
    "Find the bug: fix the clipping in a training step, without `unscale_`.",
)
SCHEDULED_STEP = Task(
    "training/loss_scaling/scheduled-step",
    "Find the bug: fix a training step with two optimizers that also moves their learning-rate schedules.",
)
LOST_SHARE = Task(
    "training/loss_scaling/lost-share",
    "Write `lost_share`, which returns the share of nonzero gradients that becomes zero in a dtype after scaling.",
)
