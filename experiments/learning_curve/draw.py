"""Draw the scores of each method against the number of labelled questions, and what ours gains."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.curves import draw_lines, label_panel
from bayeslink.plots.style import new_figure, save

SETS = {"bird": "BIRD dev", "spider": "Spider dev", "bird_evidence": "BIRD dev + evidence"}
OURS = "hierarchical_tables"
METHODS = {
    OURS: "hierarchical, table effects",
    "hierarchical": "hierarchical",
    "independent_hierarchical_tables": "independent, table effects",
    "pooled": "pooled, no update",
    "unpooled": "unpooled",
}
SCORES = {"joint_log_score": "joint log score\n(nats per question)", "exact_match": "exact match (share)"}

TICKS = (-1, -0.3, -0.1, -0.05, 0, 0.05, 0.1, 0.3, 1, 3)


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    shown = [name for name in SETS if name in set(table["data"])]
    figure = new_figure(1.0 + 3.1 * len(shown), 8.6)
    panels = figure.subplots(3, len(shown), squeeze=False, height_ratios=(1, 1, 1.3))
    for column, name in zip(panels.T, shown, strict=True):
        rows = table[table["data"] == name]
        databases = rows.groupby("labelled")["databases"].max()
        for axes, (score, unit) in zip(column, SCORES.items(), strict=False):
            wide = rows.pivot_table(index="labelled", columns="method", values=score).reset_index()
            draw_lines(
                axes, wide, "labelled", {key: text for key, text in METHODS.items() if key in wide}, markers=True
            )
            axes.set_xscale("symlog", linthresh=5, linscale=0.4)
            ticks = [f"{count}\n({size})" for count, size in databases.items()]
            axes.set_xticks(databases.index, ticks, minor=False)
            axes.set_xticks([], minor=True)
            label_panel(axes, SETS[name], "labelled questions K (databases)", unit, None)
        others = rows[rows["method"] != OURS]
        counts = others["labelled"].map("K = {}".format)
        gains = others.assign(
            label=pd.Categorical(counts, [f"K = {count}" for count in databases.index]),
            method=pd.Categorical(others["method"], list(METHODS)),
            mean=others["gain"],
            lower=others["gain_lower"],
            upper=others["gain_upper"],
        )
        draw_forest(column[2], gains, "gain of table effects (nats per question)", group="method")
        column[2].set_title(f"{SETS[name]}: gain over …", fontsize=9, loc="left")
        column[2].set_xscale("symlog", linthresh=0.1, linscale=1.5)
        low, high = column[2].get_xlim()
        ticks = [tick for tick in TICKS if low <= tick <= high]
        column[2].set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
        column[2].set_xticks([], minor=True)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(shown), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
