"""Draw the joint log score, and coverage and size of collections and covers, of every variant."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.style import new_figure, save

BENCHMARKS = {"bird-dev": "BIRD dev", "spider-dev": "Spider dev"}
NAMES = {
    "independent": "independent",
    "independent_hierarchical": "independent hierarchical",
    "pooled": "pooled",
    "pooled_coupling": "pooled coupling",
    "hierarchical": "hierarchical",
    "fixed": "fixed coupling",
    "independent_platt": "independent, Platt",
    "fixed_platt": "fixed coupling, Platt",
    "independent_hierarchical_platt": "independent hierarchical, Platt",
    "hierarchical_platt": "hierarchical, Platt",
}
FEW = ("independent", "independent_hierarchical", "pooled_coupling", "hierarchical", "fixed", "hierarchical_platt")
"""Those of the panels with levels; the table has all."""
LEVELS = (0.5, 0.8, 0.95)
"""Levels that are drawn; four would run into each other."""

PANELS = {
    "a  Joint log score: gain of hierarchical over …": ("gain_of_hierarchical", "nats per question"),
    "b  Collections: coverage − stated probability": ("excess", "share of questions"),
    "c  Collections: size": ("size", "subsets per question"),
    "d  Covers: coverage − stated probability": ("cover_excess", "share of questions"),
    "e  Covers: size": ("cover_size", "tables per question"),
}


def as_forest(rows: pd.DataFrame, score: str) -> pd.DataFrame:
    """Mean and interval of one score."""
    ends = {"mean": score, "lower": f"{score}_lower", "upper": f"{score}_upper"}
    return rows.assign(**{end: rows[column] for end, column in ends.items()})


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    table = table[table["level"].isin(LEVELS)]
    shown = [name for name in NAMES if name in set(table["variant"])]
    table["label"] = pd.Categorical(table["variant"].map(NAMES), [NAMES[name] for name in shown])
    table["nominal"] = [f"level {100 * level:g} %" for level in table["level"]]
    sets = list(dict.fromkeys(table["data"]))
    figure = new_figure(1.9 + 2.6 * len(sets), 10.8)
    heights = (3.4, 3, 3, 3, 3)
    panels = figure.subplots(len(PANELS), len(sets), squeeze=False, sharey="row", height_ratios=heights)
    for column, data in zip(panels.T, sets, strict=True):
        rows = table[table["data"] == data]
        for axes, (title, (score, unit)) in zip(column, PANELS.items(), strict=True):
            if score == "gain_of_hierarchical":
                draw_forest(axes, as_forest(rows[rows["level"] == LEVELS[0]], score), unit)
            else:
                few = rows[rows["variant"].isin(FEW)]
                few = few.assign(label=few["label"].cat.remove_unused_categories())
                draw_forest(axes, as_forest(few, score), unit, group="nominal")
            heading = BENCHMARKS.get(data, data)
            axes.set_title(f"{title}\n{heading}" if data == sets[0] else heading, fontsize=9, loc="left")
            axes.locator_params(axis="x", nbins=5)
    handles, labels = panels[1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
