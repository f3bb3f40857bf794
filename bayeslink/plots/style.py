"""Sizes, fonts and colours of every figure; colour-blind safe and readable in grey."""

import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from matplotlib import rc_context
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager

__all__ = [
    "ACCENT",
    "BENCHMARKS",
    "DEV_SETS",
    "INK",
    "LOOKS",
    "PROBABILITY",
    "SUFFIXES",
    "font_families",
    "new_figure",
    "save",
]

DEV_SETS = {"spider-dev": "Spider", "bird-dev": "BIRD", "bird-dev-evidence": "BIRD + evidence"}
"""Label of each dev set."""
BENCHMARKS = {
    "spider": "Spider",
    "bird": "BIRD",
    "bird_evidence": "BIRD + evidence",
    "spider2": "Spider 2.0-lite",
    "beaver_dw": "BEAVER dw",
    "beaver_nw": "BEAVER nw",
    "fiben": "FIBEN",
}
"""Label of each set of questions, by the name that figures of results carry."""
"""What a figure calls the dev sets."""

INK = "#1f2933"
ACCENT = "#b3361e"
PROBABILITY = LinearSegmentedColormap.from_list("probability", ["#f5f7fa", "#9fc5e0", "#2f7fb5", "#0b3c66"])
"""White to dark blue, so that darker is more probable in grey as well."""

LOOKS = (
    (INK, "-", "o", INK),
    (ACCENT, "--", "s", "white"),
    ("#2f7fb5", "-.", "^", "#2f7fb5"),
    ("#8a8f98", ":", "D", "white"),
    ("#6b4c9a", (0, (5, 1, 1, 1, 1, 1)), "v", "#6b4c9a"),
)
"""Colour, dashes, marker and its filling of each line or group: told apart by the last three without colour."""

SUFFIXES = (".png", ".svg", ".pdf")
"""Formats in which a figure can be written."""

_WIDE_FONTS = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Source Han Sans",
    "Hiragino Sans",
    "PingFang SC",
    "Yu Gothic",
    "Microsoft YaHei",
    "MS Gothic",
    "Malgun Gothic",
    "WenQuanYi Micro Hei",
    "IPAexGothic",
    "Arial Unicode MS",
)


@cache
def font_families() -> Sequence[str]:
    """Names of fonts for texts: the one that matplotlib carries, then those installed that have CJK characters."""
    installed = {font.name for font in fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in _WIDE_FONTS if name in installed)]


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches; it belongs to nobody, so there is nothing to close."""
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, path: Path | str) -> None:
    """Write a figure; the suffix gives the format, and nothing in the file depends on the clock.

    Raises:
        ValueError: If the suffix is not png, svg or pdf.
    """
    path = Path(path)
    metadata = dict(zip(SUFFIXES, ({"Software": None}, {"Date": None}, {"CreationDate": None}), strict=True))
    if path.suffix not in metadata:
        raise ValueError(f"picture={str(path)!r}: use a file name that ends in {', '.join(SUFFIXES)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "bayeslink"}), warnings.catch_warnings():
        # Where no installed font has a character, matplotlib draws a box in its place and warns once for each;
        # the box says it, and the table beside the figure has the name.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)
        figure.savefig(path, dpi=150, metadata=metadata[path.suffix])
