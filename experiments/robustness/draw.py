"""Draw the rankings and the calibration of Spider dev asked in other words."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.style import new_figure, save

PLACES = {"spider-dev": "Spider dev", "spider-syn-dev": "Spider-Syn", "spider-realistic": "Spider-Realistic"}
NAMES = {"learned": "trees with encoder", "boosted": "trees", "boosted_lexical": "trees, no embeddings"}
SETS = PLACES | {"bird-dev": "BIRD dev", "bird-dev-evidence": "BIRD dev + evidence"}
READ = {"learned_over_boosted": "with descriptions", "learned_names_over_boosted_names": "names only"}


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    whole = pd.read_csv(asked.table)
    table = whole[whole["part"] != "gain"].copy()
    order = list(dict.fromkeys(table["name"]))[::-1]
    names = [NAMES.get(name, name.replace("_", " ")) for name in order]
    table["label"] = pd.Categorical(table["name"].map(dict(zip(order, names, strict=True))), names)
    table["place"] = pd.Categorical(table["data"].map(PLACES), [PLACES[name] for name in dict.fromkeys(table["data"])])
    figure = new_figure(10.4, 3.8)
    panels = figure.subplots(1, 3, width_ratios=(1.3, 1.0, 1.0))
    point = table["map"]
    rows = table.assign(mean=point, lower=table["map_lower"].fillna(point), upper=table["map_upper"].fillna(point))
    draw_forest(panels[0], rows, "mean average precision", group="place")
    panels[0].set_xlim(max(0.0, float(rows["lower"].min()) - 0.02), 1.0)
    fits = table[table["part"] == "fitted"]
    fits = fits.assign(label=fits["label"].cat.remove_unused_categories())
    shifts = fits.assign(mean=fits["mean_shift"], lower=fits["shift_lower"], upper=fits["shift_upper"])
    draw_forest(panels[1], shifts, "mean of p - y", group="place")
    gains = whole[whole["part"] == "gain"].rename(columns={"map": "mean", "map_lower": "lower", "map_upper": "upper"})
    sets = [name for name in SETS if name in set(gains["data"])]
    gains["label"] = pd.Categorical(gains["data"].map(SETS), [SETS[name] for name in sets][::-1])
    gains["reads"] = pd.Categorical(gains["name"].map(READ), list(READ.values()))
    draw_forest(panels[2], gains, "difference of mAP", group="reads")
    panels[2].legend(fontsize=7, frameon=False, loc="lower right")
    titles = ("a  Ranking of the tables", "b  Mean shift of the probabilities", "c  What the encoder adds")
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title, fontsize=9, loc="left")
        axes.locator_params(axis="x", nbins=4)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
