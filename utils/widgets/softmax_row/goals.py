"""The tasks of SoftmaxRow: what a reader has to find out about masks; `rule` names the test of tasks.js."""

from dataclasses import dataclass

from utils.widgets.softmax_row.facts import START, ScoreRow, as_json


@dataclass(frozen=True)
class MaskTask:
    """A task: it begins with the row `start`, and `says` what there is to learn once it is solved."""

    id: str
    text: str
    start: ScoreRow
    rule: str
    says: str
    hints: tuple[str, ...]

    def as_json(self) -> dict:
        """Return the task as the page reads it."""
        return vars(self) | {"start": as_json(self.start), "hints": list(self.hints)}


TASKS = (
    MaskTask(
        "numbers/stability/mask-nan",
        "Scores and softmax are float16, and the mask is added. What is the whole number closest to 0 that, as the "
        "value of the mask, makes every weight of the row of padding NaN?",
        ScoreRow(("-100", "-130", "-104", "-101"), START.masked, value="-1e4"),
        "nan",
        "Float16 stores −65424 as −65408, too near 0, and −65425 as −65440, which takes even −100 to −inf. Then "
        "−inf − (−inf) is NaN. The other row hides it, because its largest score is finite.",
        (
            "Every score of the row of padding must become −inf, even the largest.",
            "Float16 rounds a sum of −65520 to −inf. Is the mask stored as you typed it?",
            "Which whole numbers does float16 store as −65440?",
        ),
    ),
    MaskTask(
        "numbers/stability/mask-leak",
        "Everything is float32, and −10000 is added. Change the scores, and nothing else, until more than 1 % of the "
        "weight in your row is on a masked score.",
        ScoreRow(START.scores, START.masked, format="float32", value="-1e4"),
        "leak",
        "A finite mask that is added only moves a score down. It hides the score unless that was nearly 10000 above "
        "the largest of the others, or more.",
        (
            "After the mask, the masked score must be at most about 4 below the largest of the others.",
            "How large must it be before the mask, then?",
            "Type 10006 for score 2.",
        ),
    ),
    MaskTask(
        "numbers/stability/mask-two",
        "Everything is bfloat16, and the lowest bfloat16 number is added, so the row of padding gets equal weights. "
        "Make it NaN without changing the scores, the softmax, a dtype or the value.",
        ScoreRow(START.scores, START.masked, format="bfloat16"),
        "two",
        "Two masks, such as one for padding and one for future tokens, add up to −inf. Combine masks while they are "
        "boolean.",
        ("A decoder has a mask for future tokens too.", "In “Way of masking”, choose “add twice”."),
    ),
    MaskTask(
        "numbers/stability/mask-cast",
        "The scores are float32 and the softmax is computed in float16. Give the row of padding finite weights, and "
        "keep the weight of your masked score at exactly 0. Do not change a dtype.",
        ScoreRow(
            START.scores, START.masked, "float32", mask="put", value="-3.4028234663852886e38", softmax_format="float16"
        ),
        "cast",
        "The lowest float32 number becomes −inf when it is cast; the lowest number of the softmax’s dtype, here "
        "−65504, stays finite. A value nearer 0, such as −10, leaks as soon as the other scores are smaller.",
        ("Which number becomes −inf, and at which step?", "Which is the lowest number of the softmax’s dtype?"),
    ),
)
