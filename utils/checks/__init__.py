"""Checks of the exercises: one module a chapter, one `check_<exercise>` an exercise, each returning an `Outcome`."""
