"""Draw agreement of guessed keys, their coupling, and coverage with and without them."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.style import new_figure, save

SHOWN = {"as_stated": "primary keys stated", "keys_hidden": "primary keys hidden"}
CASES = {
    "hierarchical": "declared keys",
    "independent_hierarchical": "declared keys, no coupling",
    "hierarchical_inferred": "guessed keys too",
    "independent_hierarchical_inferred": "guessed keys too, no coupling",
}


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    figure = new_figure(10.6, 4.6)
    panels = figure.subplots(1, 3)
    agreed = table[(table["part"] == "agreement") & (table["unit"] == "edges")]
    parts = []
    for name in ("precision", "recall"):
        ends = {"mean": agreed[name], "lower": agreed[f"{name}_lower"], "upper": agreed[f"{name}_upper"]}
        parts.append(agreed.assign(label=agreed["set"] + ", " + name, group=agreed["shown"].map(SHOWN), **ends))
    draw_forest(panels[0], pd.concat(parts).dropna(subset=["mean"]), "share of joined pairs", group="group")
    coupling = table[table["part"] == "coupling"]
    draw_forest(panels[1], coupling.assign(label=coupling["kind"], mean=coupling["value"]), "coupling, log-odds")
    covers = table[table["part"] == "cover"]
    labels = covers["set"] + ", k = " + covers["k"].astype(int).astype(str)
    covers = covers.assign(label=labels, group=covers["case"].map(CASES), mean=covers["value"])
    draw_forest(panels[2], covers, "all gold tables, share", group="group")
    titles = ("a  Guessed keys against declared", "b  Coupling by kind of edge", "c  At schemagate's mean size")
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title, fontsize=9, loc="left")
        if axes.get_legend() is not None:
            axes.get_legend().remove()
    for axes in (panels[0], panels[2]):
        axes.legend(fontsize=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    save(figure, asked.out)


if __name__ == "__main__":
    main()
