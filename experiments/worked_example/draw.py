"""Draw the schema graph before and after coupling, beside the exact probabilities along couplings."""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from bayeslink.plots.curves import draw_lines, label_panel, shade_window
from bayeslink.plots.graphs import draw_schema_graph
from bayeslink.plots.style import ACCENT, PROBABILITY, new_figure, save


def draw_graph(axes: Axes, sidecar: dict, row: pd.Series, title: str) -> Axes:
    """The schema graph with each table's probability at one coupling, the most probable set outlined."""
    names = sidecar["tables"]
    marginals = row[[f"{name}_probability" for name in names]].to_numpy(dtype=float)
    draw_schema_graph(axes, names, marginals, np.array(sidecar["edges"]), np.isin(names, row["mode"].split()))
    axes.set_title(title, fontsize=9, loc="left")
    axes.get_legend().remove()  # It speaks of a cover; the outline is the mode here.
    # The graph is a path: one row of labels.
    middle = np.mean([label.get_position()[1] for label in axes.texts])
    axes.set_ylim(middle - 0.35, middle + 0.35)
    return axes


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    sidecar = json.loads(asked.table.with_name("table.json").read_text())
    figures = sidecar["figures"]
    figure = new_figure(6.8, 4.9)
    graphs, curves = figure.subfigures(2, 1, height_ratios=(1.0, 1.15))
    above, below = graphs.subplots(2, 1)
    draw_graph(above, sidecar, table[table["coupling"] == 0].iloc[0], "a  Before: coupling 0")
    title = f"b  After: coupling {figures['coupling_shown']:.2f} nats, the middle of the window"
    draw_graph(below, sidecar, table[table["shown"]].iloc[0], title)
    marks = [
        Patch(facecolor="white", edgecolor=ACCENT, linewidth=2.2, label="in the most probable set"),
        Patch(facecolor=PROBABILITY(0.9), label="darker: more probable"),
    ]
    graphs.legend(handles=marks, loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    axes = curves.subplots()
    window = figures["window_lower"], figures["window_upper"]
    shade_window(axes, *window, f"stable\n{window[0]:.2f} to {window[1]:.2f}")
    lines = {f"{name}_probability": name for name in ("customers", "products", "transactions", "categories")}
    draw_lines(axes, table, "coupling", lines | {"relevant_set_probability": "exactly the\nthree needed"})
    axes.axhline(0.5, color="0.5", linewidth=0.8)
    axes.set_ylim(0.0, 1.2)
    axes.set_yticks([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    label_panel(axes, "c  Exact probabilities", "coupling (nats)", "probability", None)
    curves.legend(loc="outside right center", fontsize=8, handlelength=2.8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
