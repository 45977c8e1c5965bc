"""Checks of `practice/capstone`."""

from collections.abc import Mapping

import torch

from utils.checks.outcome import Outcome, as_number, choice_table, correct, exercise, not_yet, paper
from utils.checks.practice.capstone_questions import BAR, LOGITS, PLAN, REPORTS, VERDICTS, VOCABULARY
from utils.experiments.capstone import comparison
from utils.experiments.capstone.forecasts import forecast, refuse
from utils.experiments.capstone.plans import Plan, make_problem, parse_plan

SHOWN = tuple(map(parse_plan, comparison.PLANS))  # the plans of the table
PROMISE = 0.08  # how far the promised bytes may lie from the measured ones
MEBI = 2**20 / 1e6  # MB in a MiB

check_logits = paper(LOGITS)
check_vocabulary = paper(VOCABULARY)
check_verdicts = choice_table(VERDICTS, says="These are the answers of refuse(plan, given).")
check_reports = choice_table(REPORTS, says="Each lacks more than this, but these gaps decide what the report is worth.")


@exercise(asks=PLAN, seconds=300)  # it trains the plan
def check_plan(answer) -> Outcome:
    """A dict: "plan", a Plan or its name, and "MB", promised for a step. It is trained on the CPU from seed 0."""
    if not isinstance(answer, Mapping) or {"plan", "MB"} - answer.keys():
        return not_yet('Give a dict with both: {"plan": Plan("bf16-true", 128, 8), "MB": 12.3}.')
    plan = answer["plan"]
    if isinstance(plan, str):
        try:
            plan = parse_plan(plan)
        except ValueError as error:
            return not_yet(f"{error}.")
    if not isinstance(plan, Plan):
        return not_yet(f"{answer['plan']!r} is not a plan; write it like Plan('bf16-true', 128, 8).")
    if plan in SHOWN:
        return not_yet(f"{plan.name} is in the chapter's table. Find another plan.")
    promised, problem = as_number(answer["MB"]), make_problem("small", device=torch.device("cpu"))
    if why := refuse(plan, problem):
        return not_yet(why)
    moments = forecast(plan, problem).moments
    if like := next((shown for shown in SHOWN if forecast(shown, problem).moments == moments), None):
        return not_yet(
            f"{plan.name} takes as many bytes as {like.name}, which the chapter's table gives. Find another plan."
        )
    took, promise = comparison.measure_peak(plan, problem) / 1e6, forecast(plan, problem).peak  # MB, bytes
    if abs(promised * MEBI * 1e6 / promise - 1) < 0.005:
        return not_yet("This looks like MiB, which have 2^20 bytes each. Promise MB: 1 MB is 10^6 bytes.")
    if not abs(promised - took) <= PROMISE * took:
        if abs(promised * 1e6 / promise - 1) < 0.01:
            return not_yet(
                f"You promised {promised:.1f} MB, as the forecast does, but a step takes {took:.1f}. Here the formula "
                "is off, not your count. Promise what a step takes, or choose another plan."
            )
        return not_yet(
            f"You promised {promised:.1f} MB, but a step takes {took:.1f}. Count again before you change the plan: "
            "which moment of the step is the highest, and what is alive then?"
        )
    loss = comparison.measure_plan(plan, problem).loss
    if not loss <= BAR:
        return not_yet(
            f"The bytes are as promised, {took:.1f} MB, but the held-out loss is {loss:.3f}; it has to be {BAR} or "
            "lower. What would you do with more room, and which lever makes room without rounding anything?"
        )
    return correct(f"{plan.name}: {took:.1f} MB, as promised, and a held-out loss of {loss:.3f}.")
