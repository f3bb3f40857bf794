"""How values show themselves: their pictures and pages lie with the plots, and are found by name when first asked for.

Named, not imported: results do not depend on how they are drawn, so that a new picture makes no result stale.
"""

import importlib
from pathlib import Path

__all__ = ["Drawn", "Shown"]

VIEWS = "bayeslink.plots.views"
"""Module with `page` and `figure` of every value that shows itself."""


class Shown:
    """A value that a notebook shows as a page, and that can be drawn."""

    def _repr_html_(self) -> str:
        return importlib.import_module(VIEWS).page(self)


class Drawn(Shown):
    """A value with a picture of its own."""

    def plot(self, path: Path | str | None = None, **settings):
        """A picture, as a matplotlib Figure; written to `path` where given.

        Args:
            path: File to write; its suffix gives the format.
            settings: For a distribution `names` of the tables and the `question`, by its position.

        Raises:
            ValueError: If the path's suffix is not png, svg or pdf, or a setting does not fit.
        """
        return importlib.import_module(VIEWS).figure(self, path, **settings)
