"""Draw each database's coupling under the hierarchy and alone, the shrinkage, and what goes with the coupling."""

import argparse
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.curves import label_panel
from bayeslink.plots.style import ACCENT, INK, new_figure, save

BENCHMARKS = {"bird": "BIRD", "spider": "Spider"}
FITS = {"nested": "hierarchical", "unpooled": "unpooled"}
PROPERTIES = {
    "num_tables": "number of tables",
    "mean_degree": "mean degree",
    "isolated_share": "share isolated",
    "num_questions": "number of questions",
}
UNRELATED = 1.96
"""Rank correlations of unrelated properties are within this over the root of n - 1 in 95 % of samples, about."""
LIMIT = (-4.0, 6.0)


def draw_couplings(axes: Axes, rows: pd.DataFrame, title: str) -> None:
    """Forest of couplings, largest on top; intervals that leave the panel end in an arrow."""
    found = rows[(rows["quantity"] == "coupling") & rows["fit"].isin(FITS)]
    order = found[found["fit"] == "nested"].sort_values("value", ascending=False)["database"].tolist()
    found = found.assign(
        label=pd.Categorical(found["database"], order),
        fit=pd.Categorical(found["fit"].map(FITS), list(FITS.values())),
        mean=found["value"].clip(*LIMIT),
    )
    draw_forest(axes, found, "coupling (nats)", group="fit")
    centre = rows[(rows["fit"] == "nested") & (rows["quantity"] == "beta")].iloc[0]
    axes.axvspan(centre["lower"], centre["upper"], color="#9fc5e0", alpha=0.35, linewidth=0, label="common β, 95 %")
    lowest, highest = found["lower"].min(), found["upper"].max()
    axes.set_xlim(max(lowest - 0.2, LIMIT[0]), min(highest + 0.2, LIMIT[1]))
    for end, outside in (("lower", found["lower"] < LIMIT[0]), ("upper", found["upper"] > LIMIT[1])):
        for label in found.loc[outside, "label"]:
            height = len(order) - 1 - order.index(label) - 0.15
            edge = LIMIT[end == "upper"]
            axes.plot(edge, height, marker="<" if end == "lower" else ">", color=ACCENT, markersize=4, clip_on=False)
    axes.set_title(title, fontsize=9, loc="left")


def draw_shrinkage(axes: Axes, rows: pd.DataFrame, title: str) -> None:
    """The hierarchical estimate against the unpooled one, with the line of no shrinkage."""
    wide = rows[rows["quantity"] == "coupling"].pivot_table(index="database", columns="fit", values="value")
    ends = [wide[["nested", "unpooled"]].min().min() - 0.2, wide[["nested", "unpooled"]].max().max() + 0.2]
    axes.plot(ends, ends, color="0.5", linewidth=0.8, linestyle=(0, (2, 2)), label="no shrinkage")
    centre = rows[(rows["fit"] == "nested") & (rows["quantity"] == "beta")].iloc[0]["value"]
    axes.axhline(centre, color=INK, linewidth=0.8, linestyle=":", label="common β")
    axes.plot(wide["unpooled"], wide["nested"], color=INK, marker="o", markersize=4.5, linestyle="")
    axes.spines[["top", "right"]].set_visible(False)
    label_panel(axes, title, "unpooled (nats)", "hierarchical (nats)", "upper left")


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    benchmarks = list(dict.fromkeys(table["data"]))
    figure = new_figure(4.4 * len(benchmarks), 8.6)
    panels = figure.subplots(3, len(benchmarks), squeeze=False, height_ratios=(4, 2.2, 1.4))
    for (forest, shrunk, ranks), bench in zip(panels.T, benchmarks, strict=True):
        rows, name = table[table["data"] == bench], BENCHMARKS.get(bench, bench)
        draw_couplings(forest, rows, f"{name}: coupling of each database, 95 %")
        draw_shrinkage(shrunk, rows, f"{name}: shrinkage of the means")
        found = rows[rows["quantity"] == "spearman"]
        names = [text for given, text in PROPERTIES.items() if given in set(found["property"])]
        found = found.assign(
            label=pd.Categorical(found["property"].map(PROPERTIES), names),
            fit=pd.Categorical(found["fit"].map(FITS), list(FITS.values())),
            mean=found["value"],
        )
        draw_forest(ranks, found, "Spearman correlation with the coupling", group="fit")
        databases = rows[rows["quantity"] == "property"]["database"].nunique()
        by_chance = UNRELATED / max(databases - 1, 1) ** 0.5
        ranks.axvspan(-by_chance, by_chance, color="0.9", zorder=0)
        ranks.set(xlim=(-1, 1), xticks=[-1, -0.5, 0, 0.5, 1])
        ranks.set_title(f"{name}: correlates (grey: chance)", fontsize=9, loc="left")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
