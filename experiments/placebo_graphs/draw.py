"""Draw the gain and the recovered weak tables of the real graph among those of placebo graphs."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.criticism import draw_forest, draw_strips
from bayeslink.plots.style import new_figure, save

PLACES = {"bird-dev": "BIRD dev", "spider-dev": "Spider dev"}
KINDS = {"rewired": "rewired,\nequal degrees", "random": "random,\nequal density", "relabelled": "tables\nrelabelled"}
GRAPHS = {"placebo": "a placebo graph", "none": "no graph", "real": "the real graph, 95 %"}
TITLES = ("a  Held-out joint log score", "b  Weak tables recovered at one size")
UNITS = ("gain over independent hierarchical\n(nats per question)", "share of weak tables")


def values(table: pd.DataFrame) -> list[pd.DataFrame]:
    """Value and interval of each panel; the recovered share has none."""
    share = table["weak_recovered"] / table["weak"]
    gain = pd.DataFrame({"mean": table["gain"], "lower": table["gain_lower"], "upper": table["gain_upper"]})
    return [
        found.assign(
            label=pd.Categorical(table["kind"].map(KINDS), [*KINDS.values()]),
            group=pd.Categorical(table["graph"].map(GRAPHS), [*GRAPHS.values()]),
            value=found["mean"],
        )
        for found in (gain, pd.DataFrame({"mean": share, "lower": share, "upper": share}))
    ]


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    data = list(dict.fromkeys(table["data"]))
    figure = new_figure(1.2 + 2.9 * len(data), 5.4)
    panels = figure.subplots(2, len(data), squeeze=False, sharey=True)
    for row, title, unit, number in zip(panels, TITLES, UNITS, (0, 1), strict=True):
        for place, (axes, name) in enumerate(zip(row, data, strict=True)):
            found = values(table[table["data"] == name])[number]
            draw_forest(axes, found[found["group"] != GRAPHS["placebo"]], unit, group="group")
            ends = [found[column].agg(which) for column, which in (("lower", "min"), ("upper", "max"))]
            lower, upper = min(ends[0], found["value"].min(), 0.0), max(ends[1], found["value"].max(), 0.0)
            room = 0.05 * (upper - lower)
            placebos = found[found["group"] == GRAPHS["placebo"]]
            draw_strips(axes, placebos, unit, 0.0, (lower - room, upper + room))
            axes.plot([], [], marker="o", color="#1f2933", markerfacecolor="none", markersize=4.5, linestyle="",
                      label=GRAPHS["placebo"])  # fmt: skip
            axes.set_title(f"{title}\n{PLACES[name]}" if place == 0 else PLACES[name], fontsize=9, loc="left")
            axes.locator_params(axis="x", nbins=5)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
