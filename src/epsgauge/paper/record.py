"""The reproduction as a structure for JSON; `docs/paper.md` documents it."""

from __future__ import annotations

from typing import Any

from epsgauge.numbers import json_ready
from epsgauge.paper.compare import NOTHING, Compared
from epsgauge.paper.reproduction import Reproduction
from epsgauge.paper.tables import Row, Table
from epsgauge.stats.tally import CELLS


def record(found: Reproduction) -> dict[str, Any]:
    """Dicts and lists; infinity is "inf", and a number that does not exist is null."""
    cells = [cell for cell in found.cells() if cell.printed is not None]
    out = {
        "delta": found.delta,
        "level": found.level,
        "printed": len(cells),
        "differing": sum(cell.differs for cell in cells),
        "summary": _table(found.summary),
        "tables": [_table(table) for table in found.tables],
        "examples": [
            {
                "name": example.name,
                "where": example.where,
                "title": example.title,
                "items": [{"label": item.label, **_cell(item.compared)} for item in example.items],
            }
            for example in found.examples
        ],
        "notes": {key: {"number": found.numbers[key], "text": text} for key, text in found.notes.items()},
    }
    ready: dict[str, Any] = json_ready(out)
    return ready


def _table(table: Table) -> dict[str, Any]:
    return {"name": table.name, "number": table.number, "title": table.title, "rows": [_row(row) for row in table.rows]}


def _row(row: Row) -> dict[str, Any]:
    return {
        "label": row.label,
        "m": row.m,
        "tally": {name: int(getattr(row.tally, name)) for name in CELLS},
        "n_samples": int(row.tally.n_samples),
        "methods": {
            name: {
                "low": _cell(cells.low),
                "high": _cell(cells.high),
                "width": _cell(cells.width),
                "vs_clopper_pearson_percent": None if cells.vs_cp is None else _cell(cells.vs_cp),
            }
            for name, cells in row.methods.items()
        },
    }


def _cell(cell: Compared) -> dict[str, Any]:
    printed = None if cell.printed in (None, NOTHING) else cell.printed
    return {"printed": printed, "recomputed": cell.recomputed, "agrees": cell.agrees, "note": cell.note}
