"""A file that says which group each point of the data belongs to: CSV with the columns point and group."""

from __future__ import annotations

import csv
import os
from pathlib import Path

from epsgauge.errors import InvalidInput

COLUMNS = ("point", "group")


def read_groups(path: str | os.PathLike[str]) -> dict[int, str]:
    """Index of a point in the data -> the name of its group."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise InvalidInput(f"{path} must have the columns point and group, but has no {missing[0]}.")
            found: dict[int, str] = {}
            for row in reader:
                point, group = row["point"], row["group"]
                if point is None or not point.strip().isdecimal() or not group:
                    raise InvalidInput(
                        f"{path}, line {reader.line_num}: a row must have the index of a point and the name of its "
                        f"group, but got {str(point)[:80]!r} and {str(group)[:80]!r}."
                    )
                if found.setdefault(int(point), group) != group:
                    raise InvalidInput(f"{path}, line {reader.line_num}: point {point} is in two groups. Choose one.")
    except OSError as error:
        raise InvalidInput(f"the groups {path} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{path} is not CSV in UTF-8: {error}.") from None
    if not found:
        raise InvalidInput(f"{path} has a header and no rows. Give one row for each point.")
    return found
