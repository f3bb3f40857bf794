"""Draw the gains of `hierarchical` on databases left out, and the replicated statistics of the last set."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.criticism import draw_forest, draw_predictive_check
from bayeslink.plots.style import new_figure, save


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    lodo = table[(table["part"] == "lodo") & (table["database"] == "all") & (table["variant"] != "hierarchical")]
    names = {"label": lodo["variant"].str.replace("_", "\n"), "mean": lodo["difference"]}
    shown = table["set"].iloc[-1]
    checked = table[(table["part"] == "ppc") & (table["set"] == shown) & (table["variant"] == "hierarchical")]
    height = max(2.6, 1.0 + 0.16 * checked["database"].nunique())
    figure = new_figure(10.2, height)
    left, middle, right = figure.subplots(1, 3)
    draw_forest(left, lodo.assign(**names), "gain in log score per question (nats)", group="set")
    left.set_title("a  Gain of hierarchical, left out, over …", fontsize=9, loc="left")
    left.legend(fontsize=8, frameon=False)
    for axes, statistic, title in (
        (middle, "num_selected", f"b  Selected tables, {shown} dev"),
        (right, "num_joined_pairs", f"c  Joined pairs, {shown} dev"),
    ):
        draw_predictive_check(axes, checked, statistic)
        axes.set_title(title, fontsize=9, loc="left")
    handles, labels = middle.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower right", ncols=len(labels), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
