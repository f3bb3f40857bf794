"""Draw the rankings and the calibration of Spider dev asked in other words."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.style import new_figure, save

PLACES = {"spider-dev": "Spider dev", "spider-syn-dev": "Spider-Syn", "spider-realistic": "Spider-Realistic"}
NAMES = {"learned": "trees with encoder", "boosted": "trees", "boosted_lexical": "trees, no embeddings"}


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    order = list(dict.fromkeys(table["name"]))[::-1]
    names = [NAMES.get(name, name.replace("_", " ")) for name in order]
    table["label"] = pd.Categorical(table["name"].map(dict(zip(order, names, strict=True))), names)
    table["place"] = pd.Categorical(table["data"].map(PLACES), [PLACES[name] for name in dict.fromkeys(table["data"])])
    figure = new_figure(8.4, 3.8)
    panels = figure.subplots(1, 2, width_ratios=(1.3, 1.0))
    point = table["map"]
    rows = table.assign(mean=point, lower=table["map_lower"].fillna(point), upper=table["map_upper"].fillna(point))
    draw_forest(panels[0], rows, "mean average precision", group="place")
    panels[0].set_xlim(max(0.0, float(rows["lower"].min()) - 0.02), 1.0)
    fits = table[table["part"] == "fitted"]
    fits = fits.assign(label=fits["label"].cat.remove_unused_categories())
    shifts = fits.assign(mean=fits["mean_shift"], lower=fits["shift_lower"], upper=fits["shift_upper"])
    draw_forest(panels[1], shifts, "mean of p - y", group="place")
    for axes, title in zip(panels, ("a  Ranking of the tables", "b  Mean shift of the probabilities"), strict=True):
        axes.set_title(title, fontsize=9, loc="left")
        axes.locator_params(axis="x", nbins=4)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
