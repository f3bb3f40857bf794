"""Draw the mean shift and the intercept that compensates it."""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd

from bayeslink.plots.curves import draw_lines, label_panel
from bayeslink.plots.style import INK, new_figure, save


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    fixed = json.loads(asked.table.with_name("table.json").read_text())["figures"]["intercept"]
    columns = ["size_fixed", "size_compensated", "gold_size", "intercept"]
    rows = [
        {"coupling": beta} | {name: np.average(part[name], weights=part["questions"]) for name in columns}
        for beta, part in table.groupby("coupling")
    ]
    mean = pd.DataFrame(rows).assign(fixed=fixed)
    figure = new_figure(6.8, 2.9)
    left, right = figure.subplots(1, 2)
    for axes, column in ((left, "size_fixed"), (right, "intercept")):
        for _, part in table.groupby("database"):
            axes.plot(part["coupling"], part[column], color="0.78", linewidth=0.8)
        axes.plot([], [], color="0.78", linewidth=0.8, label="each database")
    draw_lines(left, mean, "coupling", {"size_fixed": "fixed intercept", "size_compensated": "compensated = gold"})
    left.set_ylim(bottom=0.0)
    label_panel(left, "a  Selected tables per question", "coupling (nats)", "E[N]  (tables)", "upper left")
    draw_lines(right, mean, "coupling", {"intercept": "mean over questions"})
    right.axhline(fixed, color=INK, linewidth=0.8, linestyle=":", label="pooled fit without coupling")
    label_panel(right, "b  Intercept that restores the mean", "coupling (nats)", "α(β)  (log-odds)", "lower left")
    save(figure, asked.out)


if __name__ == "__main__":
    main()
