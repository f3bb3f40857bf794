"""Draw the weak tables that each variant recovers, the split into connectors and the rest, and precision."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.style import new_figure, save

NAMES = {
    "independent": "independent",
    "independent_hierarchical": "independent\nhierarchical",
    "fixed": "fixed, 0.6",
    "pooled": "pooled",
    "pooled_coupling": "pooled coupling",
    "hierarchical": "hierarchical",
}
PLACES = {"bird-dev": "BIRD dev", "spider-dev": "Spider dev"}
RULES = {"own": "own threshold, 1/2", "matched": "size of hierarchical"}
TABLES = {"connectors": "structural connectors", "rest": "other weak tables"}
SCHEMES = {"known": "new questions", "unseen": "unseen databases"}
TITLES = (
    "a  Weak tables recovered, new questions",
    "b  The same at one size, split",
    "c  Precision, new questions",
    "d  Gain of hierarchical over … at one size",
)


def part(table: pd.DataFrame, values: str, group: str, names: dict[str, str]) -> pd.DataFrame:
    """Label, mean, interval and group of the rows."""
    present = [name for key, name in names.items() if key in set(table[group])]
    return pd.DataFrame(
        {
            "label": pd.Categorical(table["variant"].map(NAMES), [*NAMES.values()]),
            "mean": table[values],
            "lower": table[f"{values}_lower"],
            "upper": table[f"{values}_upper"],
            "group": pd.Categorical(table[group].map(names), present),
        }
    )


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    table["precision"] = table["precision"].astype(float)
    known, weak = table["scheme"] == "known", table["tables"] == "weak"
    matched = table["rule"] == "matched"
    rows = (
        (table[known & weak], "share", "rule", RULES, "share of weak tables"),
        (table[known & matched & ~weak], "share", "tables", TABLES, "share of these tables"),
        (table[known & weak], "precision", "rule", RULES, "precision"),
        (table[matched & weak & (table["variant"] != "hierarchical")], "difference", "scheme", SCHEMES,
         "difference of shares"),
    )  # fmt: skip
    data = list(dict.fromkeys(table["data"]))
    figure = new_figure(1.4 + 2.7 * len(data), 10.0)
    panels = figure.subplots(4, len(data), squeeze=False, sharey="row", sharex="row")
    for axes, title, (chosen, values, group, names, unit) in zip(panels, TITLES, rows, strict=True):
        for place, (one, name) in enumerate(zip(axes, data, strict=True)):
            found = part(chosen[chosen["data"] == name], values, group, names)
            if values == "difference":
                found["label"] = found["label"].cat.remove_categories(["hierarchical"])
            draw_forest(one, found, unit, group="group")
            one.set_title(f"{title}\n{PLACES[name]}" if place == 0 else PLACES[name], fontsize=9, loc="left")
            one.locator_params(axis="x", nbins=5)
        axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
