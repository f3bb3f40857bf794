"""Draw tokens sent and questions covered at each level."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.style import BENCHMARKS, new_figure, save


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    table["group"] = "level " + (100 * table["level"]).round().astype(int).astype(str) + " %"
    table["label"] = table["set"].map(BENCHMARKS)
    figure = new_figure(9.6, 4.2)
    panels = figure.subplots(1, 2)
    share = table["tokens_sent"] / table["tokens_whole"]
    draw_forest(panels[0], table.assign(mean=share, lower=share, upper=share), "share of tokens sent", group="group")
    ends = {"mean": "coverage", "lower": "coverage_lower", "upper": "coverage_upper"}
    covered = table.assign(**{end: table[name] for end, name in ends.items()})
    draw_forest(panels[1], covered, "all gold tables, share of questions", group="group")
    panels[0].set_title("a  Tokens sent, of those of the whole schema", fontsize=9, loc="left")
    panels[1].set_title("b  All gold tables inside", fontsize=9, loc="left")
    handles, names = panels[1].get_legend_handles_labels()
    for axes in panels:
        if axes.get_legend() is not None:
            axes.get_legend().remove()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
