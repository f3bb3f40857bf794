"""What the user already knows of tables, on the command line of `link` and `report`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayeslink.linker import Link

__all__ = ["answered", "check_answers"]


def check_answers(calibration: Path | None, needs: Sequence[str] | None, needs_not: Sequence[str] | None) -> None:
    """Refuses answers beside a calibration."""
    if calibration is not None and (needs or needs_not):
        raise ValueError(
            f"calibration={str(calibration)!r}: a promise is about questions of which nothing was said; leave "
            "--calibration or --needs and --needs-not out"
        )


def answered(found: "Link", needs: Sequence[str] | None, needs_not: Sequence[str] | None) -> "Link":
    """The link given the tables that are surely needed, and those that are surely not.

    Raises:
        ValueError: If a name is not a table's, a table is in both, or an answer has probability 0.
    """
    wanted = {found.position(name, "needs"): name for name in needs or ()}
    barred = {found.position(name, "needs-not"): name for name in needs_not or ()}
    if both := [wanted[place] for place in wanted if place in barred]:
        raise ValueError(f"needs and needs-not: {', '.join(both)} cannot be both; name it in one of them")
    return found.answer(dict.fromkeys(wanted.values(), True) | dict.fromkeys(barred.values(), False))
