"""Draw the area under risk against coverage of every method, and what ours changes."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.style import DEV_SETS, new_figure, save

METHODS = {
    "independent": "independent",
    "pooled": "pooled",
    "independent_hierarchical": "independent hierarchical",
    "independent_hierarchical_tables": "independent hierarchical",
    "hierarchical": "hierarchical",
    "hierarchical_tables": "hierarchical",
}
SETTINGS = {"embedding": "unseen, paper's three", "boosted": "unseen, trees"}


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    labelled = table["labelled"].astype(int).astype(str) + " labelled, paper's three"
    setting = table["channels"].map(SETTINGS).where(table["labelled"] == 0, labelled)
    table["label"] = setting + "\n" + table["data"].map(DEV_SETS)
    order = list(dict.fromkeys(METHODS.values()))
    table["method"] = pd.Categorical(table["method"].map(METHODS), order).remove_unused_categories()
    figure = new_figure(8.6, 0.55 * table["label"].nunique() + 1.6)
    panels = figure.subplots(1, 2, sharey=True)
    areas = table.assign(mean=table["area"], lower=table["area_lower"], upper=table["area_upper"])
    draw_forest(panels[0], areas, "area under risk against coverage", group="method")
    panels[0].set_xlim(left=0.0)
    less = table[~table["ours"]]
    less = less.assign(mean=less["relative"], lower=less["relative_lower"], upper=less["relative_upper"])
    draw_forest(panels[1], less, "hierarchical less the method, share of its area", group="method")
    for axes, title in zip(panels, ("a  Area (AURC)", "b  … of hierarchical, relative"), strict=True):
        axes.set_title(title, fontsize=9, loc="left")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
