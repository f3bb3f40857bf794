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
    names_of_sets = {"spider": "Spider dev", "bird": "BIRD dev"}
    lodo = table[(table["part"] == "lodo") & (table["database"] == "all") & (table["variant"] != "hierarchical")]
    names = {
        "label": lodo["variant"].str.replace("_", "\n"),
        "mean": lodo["difference"],
        "set": lodo["set"].replace(names_of_sets),
    }
    shown = table["set"].iloc[-1]
    checked = table[(table["part"] == "ppc") & (table["set"] == shown) & (table["variant"] == "hierarchical")]
    height = max(2.6, 1.0 + 0.16 * checked["database"].nunique())
    figure = new_figure(10.0, height)
    left, middle, right = figure.subplots(1, 3)
    draw_forest(left, lodo.assign(**names), "gain in log score per question (nats)", group="set")
    left.set_title("a  Gain of hierarchical, left out, over …", fontsize=9, loc="left")
    for axes, statistic, title in (
        (middle, "num_selected", f"b  Selected tables, {names_of_sets[shown]}"),
        (right, "num_joined_pairs", f"c  Joined pairs, {names_of_sets[shown]}"),
    ):
        draw_predictive_check(axes, checked, statistic)
        axes.set_title(title, fontsize=9, loc="left")
    for axes in (left, middle):
        handles, labels = axes.get_legend_handles_labels()
        side = "left" if axes is left else "right"
        figure.legend(handles, labels, loc=f"outside lower {side}", ncols=len(labels), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
