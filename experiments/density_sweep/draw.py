"""Draw recovery, over-selection and stability along couplings, and windows along densities."""

import argparse
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from bayeslink.plots.curves import draw_lines, label_panel
from bayeslink.plots.style import LOOKS, new_figure, save

NAMES = {"bird": "BIRD dev", "spider": "Spider dev"}
SHARES = {"stable": "gold is single-flip stable", "mode": "gold is the unique mode", "exact": "tables above 1/2 = gold"}
SHOWN = (0.5, 1.0, 1.5, 2.0)
"""Densities drawn as lines."""


def shade(axes: Axes, table: pd.DataFrame, x: str, lower: str, upper: str, place: int) -> None:
    """A band in the colour of one line."""
    axes.fill_between(table[x], table[lower], table[upper], color=LOOKS[place][0], alpha=0.13, linewidth=0)


def draw_densities(axes: Axes, rows: pd.DataFrame, column: str) -> None:
    """A line for each density, mean over its graphs; a band for the schemas' own."""
    wide = rows.pivot_table(index="coupling", columns="density", values=column, aggfunc="mean")
    shown = [density for density in SHOWN if density in wide.columns]
    named = {
        f"{density:g}": "the schema's own keys" if density == 1 else f"{density:g} × the keys" for density in shown
    }
    draw_lines(axes, wide.rename(columns="{:g}".format).reset_index(), "coupling", named)
    shade(axes, rows[rows["density"] == 1], "coupling", f"{column}_lower", f"{column}_upper", shown.index(1.0))


def draw_windows(axes: Axes, rows: pd.DataFrame) -> None:
    """Share of questions with a window along densities, mean and range over graphs."""
    found = rows[rows["coupling"] == 0].groupby("density")["window_share"].agg(["mean", "min", "max"]).reset_index()
    draw_lines(axes, found, "density", {"mean": "mean; band: least to greatest graph"}, markers=True)
    shade(axes, found, "density", "min", "max", 0)


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    data = list(dict.fromkeys(table["data"]))
    figure = new_figure(0.4 + 3.2 * len(data), 7.8)
    panels = figure.subplots(4, len(data), squeeze=False, sharey="row")
    for column, name in enumerate(data):
        rows, first = table[table["data"] == name], column == 0
        recovered, wrong, shares, windows = panels[:, column]
        draw_densities(recovered, rows, "recovered")
        draw_densities(wrong, rows, "wrong")
        own = rows[rows["density"] == 1]
        draw_lines(shares, own, "coupling", SHARES)
        for place, share in enumerate(SHARES):
            shade(shares, own, "coupling", f"{share}_lower", f"{share}_upper", place)
        draw_windows(windows, rows)
        where, beta = f": {NAMES[name]}, {own['questions'].iloc[0]} questions", "coupling (nats)"
        label_panel(recovered, f"a{where}", beta, "weak tables recovered\n(share)" if first else "", None)
        label_panel(wrong, "b", beta, "wrong tables selected\n(per question)" if first else "", None)
        label_panel(shares, "c", beta, "questions (share)" if first else "", None)
        label_panel(
            windows, "d", "edges over the schema's own keys", "questions with a\nwindow (share)" if first else "", None
        )
        for axes in (recovered, shares, windows):
            axes.set_ylim(0.0, 1.0)
        wrong.set_ylim(bottom=0.0)
    # The last benchmark has room for the keys; the lines of a are those of b.
    for axes, place in zip(panels[1:, -1], ("upper left", "lower left", "lower right"), strict=True):
        axes.legend(fontsize=7.5, handlelength=2.8, frameon=False, loc=place)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
