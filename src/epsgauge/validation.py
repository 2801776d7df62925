"""What pydantic finds wrong, as one sentence with key, rule and value."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pydantic import ValidationError

from epsgauge.references import nearest


def sentence_of(error: ValidationError, keys: Callable[[tuple[int | str, ...]], Iterable[str]]) -> str:
    """The first problem; an unknown key gets the nearest of `keys`, those that are known at a place."""
    problems = error.errors(include_url=False)
    problem = next(
        (p for p in problems if p["type"] == "extra_forbidden"), problems[0]
    )  # a misspelt key is also missing
    key = ".".join(str(part) for part in problem["loc"])
    match problem["type"]:
        case "extra_forbidden":
            known = list(keys(problem["loc"][:-1]))
            word = str(problem["loc"][-1])
            return f"{key} is not a key of a plan.{nearest(word, known) or ' There are: ' + ', '.join(known) + '.'}"
        case "missing":
            return f"{key} is missing. Add it to the plan."
        case "value_error":
            rule = problem["msg"].removeprefix("Value error, ")
            return f"{key}: {rule}."
    rule = problem["msg"].removeprefix("Input should be ").replace("String should have", "a text with").rstrip(".")
    return f"{key} must be {rule}, but got {problem['input']!r}."
