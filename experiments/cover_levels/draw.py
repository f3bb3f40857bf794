"""Draw mean size against realised coverage for every method, and realised against nominal coverage for ours."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.curves import draw_lines, label_panel
from bayeslink.plots.style import DEV_SETS, INK, new_figure, save

METHODS = {
    "hierarchical": "hierarchical",
    "independent_hierarchical": "independent hierarchical",
    "platt": "independent, Platt",
    "top_p": "independent, top-p",
    "schemagate": "schemagate, logistic",
}
SCHEMES = {"transfer": "transfer", "left_out": "one database left out"}
LEAST = 0.6
"""Coverage at which the curves begin."""


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    sets = [name for name in DEV_SETS if name in set(table["data"])]
    figure = new_figure(2.9 * len(sets) + 1.4, 7.2)
    parts = figure.subfigures(2, 1)
    grid = [part.subplots(1, len(sets), squeeze=False)[0] for part in parts]
    for column, data in enumerate(sets):
        here = table[(table["data"] == data) & (table["scheme"] == "transfer")]
        curves = here[(here["part"] == "curve") & (here["coverage"] >= LEAST)]
        lines = {name: label for name, label in METHODS.items() if name in set(curves["method"])}
        wide = curves.pivot_table(index="coverage", columns="method", values="mean_size").reset_index()
        draw_lines(grid[0][column], wide, "coverage", lines, width=1.2)
        ours = here[(here["part"] == "own") & (here["method"] == "hierarchical")]
        grid[0][column].plot(ours["coverage"], ours["mean_size"], linestyle="", marker="o", color=INK, markersize=4)
        label_panel(
            grid[0][column], DEV_SETS[data], "questions with all gold tables inside", "mean number of tables", None
        )
        axes = grid[1][column]
        axes.plot([0.75, 1.0], [0.75, 1.0], color="0.6", linewidth=0.8)
        for part, marker in (("own", "o"), ("conformal", "^")):
            for scheme, offset in (("transfer", -0.002), ("left_out", 0.002)):
                rows = table[(table["data"] == data) & (table["scheme"] == scheme) & (table["part"] == part)]
                rows = rows[rows["method"] == "hierarchical"]
                filled = {"markerfacecolor": "none"} if scheme == "left_out" else {}
                at = rows["level"] + offset + (0.001 if part == "conformal" else -0.001)
                colour = "#2f6db5" if part == "own" else "#b5532f"
                axes.vlines(at, rows["coverage_lower"], rows["coverage_upper"], color=colour, linewidth=1.0)
                label = f"{'posterior' if part == 'own' else 'conformal'} level, {SCHEMES[scheme]}"
                axes.plot(at, rows["coverage"], linestyle="", marker=marker, color=colour, label=label, **filled)
        axes.set_ylim(min(0.7, float(axes.get_ylim()[0])), 1.005)
        label_panel(axes, DEV_SETS[data], "nominal level", "questions with all gold tables inside", None)
    for part, row in zip(parts, grid, strict=True):
        handles, labels = row[0].get_legend_handles_labels()
        part.legend(handles, labels, fontsize=8, frameon=False, loc="outside lower center", ncols=3)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
