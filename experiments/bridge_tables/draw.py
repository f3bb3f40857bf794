"""Draw the share of silent gold tables found, and all gold by expansion, against the mean number of tables."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.style import new_figure, save

LABELS = {
    "hierarchical": "hierarchical",
    "independent_hierarchical": "coupling off",
    "schemagate": "schemagate",
    "hierarchical_outward": "top k, outward",
    "hierarchical_inward": "top k, inward",
    "bm25_outward": "BM25, outward",
    "bm25_inward": "BM25, inward",
}
ABOVE = ("hierarchical", "independent_hierarchical", "schemagate")
BELOW = ("hierarchical", "hierarchical_outward", "hierarchical_inward", "bm25_outward", "bm25_inward")


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    names = list(dict.fromkeys(table["set"]))
    figure = new_figure(3.2 * len(names) + 1.0, 5.6)
    panels = figure.subplots(2, len(names), squeeze=False, sharey="row")
    for column, name in enumerate(names):
        rows = table[(table["set"] == name) & table["part"].isin(["found", "expanded"])]
        for axes, methods, value in (
            (panels[0][column], ABOVE, "silent_found"),
            (panels[1][column], BELOW, "coverage"),
        ):
            for number, method in enumerate(methods):
                own = rows[rows["method"] == method].sort_values("mean_size")
                axes.plot(own["mean_size"], own[value], "o-", color=f"C{number}", markersize=3, label=LABELS[method])
            axes.set_xlabel("mean number of tables", fontsize=8)
        panels[0][column].set_title(name.replace("_", " + "), fontsize=9, loc="left")
    panels[0][0].set_ylabel("tables without a shared word, found", fontsize=8)
    panels[1][0].set_ylabel("questions with all gold tables", fontsize=8)
    for row in panels:
        row[-1].legend(fontsize=7, frameon=False, loc="lower right")
    save(figure, asked.out)


if __name__ == "__main__":
    main()
