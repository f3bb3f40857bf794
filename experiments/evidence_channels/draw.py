"""Draw how well each channel ranks alone, what the trees lose without it, and what the models add."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.style import new_figure, save

PLACES = {"spider-dev": "Spider dev", "bird-dev": "BIRD dev", "bird-dev-evidence": "BIRD dev + evidence"}
TREES = {
    "boosted": "trees",
    "boosted_names": "trees, names only",
    "boosted_lexical": "trees, no embeddings",
    "learned": "trees with encoder",
    "learned_names": "encoder, names only",
}
LISTS = {"embedding": "paper's three", "chosen": "five of the fields"} | TREES
VARIANTS = {
    "independent": "independent",
    "independent_hierarchical": "independent hierarchical",
    "hierarchical": "hierarchical",
}
TITLES = (
    "a  Each channel alone",
    "b  Trees without it",
    "c  Joint log score",
)


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    table["place"] = pd.Categorical(table["data"].map(PLACES), [PLACES[name] for name in dict.fromkeys(table["data"])])
    ranked = table[table["part"].isin(("channel", "trees"))]
    order = ranked.groupby("name", sort=False)["map"].mean().sort_values(ascending=False, kind="stable").index
    names = {name: TREES.get(name, name.replace("_", " ")) for name in order}
    figure = new_figure(10.4, 8.4)
    grid = figure.add_gridspec(1, 3, width_ratios=(1.0, 1.0, 0.9))
    panels = [figure.add_subplot(grid[0, column]) for column in range(3)]
    parts = (
        (ranked, {"mean": "map", "lower": "map_lower", "upper": "map_upper"}, "mean average precision"),
        (table[(table["part"] == "without") & (table["name"] != "nothing")],
         {"mean": "change", "lower": "change_lower", "upper": "change_upper"}, "change of mean average precision"),
    )  # fmt: skip
    for axes, (rows, ends, unit) in zip(panels, parts, strict=False):
        present = [name for name in order if name in set(rows["name"])]
        label = pd.Categorical(rows["name"].map(names), [names[name] for name in present])
        found = rows.assign(label=label, **{end: rows[column] for end, column in ends.items()})
        draw_forest(axes, found, unit, group="place")
    lowest = float(ranked["map_lower"].min())
    panels[0].set_xlim(max(0.0, lowest - 0.02), 1.0)
    fits = table[table["part"] == "fitted"]
    rows = fits.assign(
        label=pd.Categorical(
            fits["name"].map(LISTS) + "\n" + fits["variant"].map(VARIANTS),
            [f"{text}\n{variant}" for text in LISTS.values() for variant in VARIANTS.values()],
        ).remove_unused_categories(),
        **dict.fromkeys(("mean", "lower", "upper"), fits["joint_log_score"]),
    )
    draw_forest(panels[2], rows, "nats per question", group="place")
    least = float(fits["joint_log_score"].min())
    panels[2].set_xlim(least - 0.1, min(0.0, float(fits["joint_log_score"].max()) + 0.1))
    for axes, title in zip(panels, TITLES, strict=True):
        axes.set_title(title, fontsize=9, loc="left")
        axes.locator_params(axis="x", nbins=5)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
