"""Draw risk against coverage for both answers, and the differences of the areas."""

import argparse
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.curves import draw_lines, label_panel
from bayeslink.plots.style import INK, new_figure, save

BENCHMARKS = {"bird": "BIRD", "spider": "Spider"}
TASKS = {"exact": "most probable set ≠ gold", "contained": "gold outside the tables above ½"}
STATED = {"exact": "mode", "contained": "cover"}
LINES = {
    "exact": {
        ("hierarchical", "mode"): "hierarchical, 1 − P(mode)",
        ("hierarchical", "entropy"): "hierarchical, joint entropy",
        ("hierarchical", "cover"): "hierarchical, 1 − P(cover)",
        ("independent", "max_marginal"): "independent, max-marginal",
        ("independent", "product"): "independent, product of marginals",
    },
    "contained": {
        ("hierarchical", "cover"): "hierarchical, 1 − P(cover)",
        ("hierarchical", "entropy"): "hierarchical, joint entropy",
        ("hierarchical", "mode"): "hierarchical, 1 − P(mode)",
        ("independent", "max_marginal"): "independent, max-marginal",
        ("independent", "cover"): "independent, 1 − P(cover)",
    },
}
AGAINST = {
    "max_marginal": "independent, max-marginal",
    "product": "independent, product",
    "independent": "independent, P(wrong)",
    "independent_hierarchical": "indep. hierarchical, P(wrong)",
    "pooled": "pooled, P(wrong)",
    "own_max_marginal": "same answers, max-marginal",
    "own_product": "same answers, product",
    "own_entropy": "same answers, entropy",
    "no_order": "same answers, no order",
}


def draw_risks(axes: Axes, rows: pd.DataFrame, task: str, title: str) -> None:
    """One line for each ordering, the band of the first and the dotted risk that it states itself."""
    here = rows[(rows["task"] == task) & (rows["quantity"] == "risk")]
    here = here.assign(line=list(zip(here["model"], here["score"], strict=True)), coverage=100 * here["coverage"])
    lines = {pair: label for pair, label in LINES[task].items() if pair in set(here["line"])}
    first = here[(here["model"] == "hierarchical") & (here["score"] == STATED[task])]
    axes.fill_between(first["coverage"], first["lower"], first["upper"], color="#9fc5e0", alpha=0.5, linewidth=0)
    wide = here.pivot_table(index="coverage", columns="line", values="value").rename(columns=lines).reset_index()
    draw_lines(axes, wide, "coverage", {label: label for label in lines.values()})
    stated = rows[(rows["task"] == task) & (rows["quantity"] == "stated_risk") & (rows["model"] == "hierarchical")]
    axes.plot(
        100 * stated["coverage"],
        stated["value"],
        color=INK,
        linewidth=0.9,
        linestyle=(0, (1, 2)),
        label="stated by the first, of its answers",
    )
    axes.set_xlim(0, 100)
    axes.set_ylim(bottom=0.0)
    label_panel(axes, title, "questions answered (%)", "share wrong of those answered", None)


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table, keep_default_na=False, na_values=["", "nan"])
    benchmarks = list(dict.fromkeys(table["data"]))
    names = {bench: BENCHMARKS.get(bench, bench) for bench in benchmarks}
    figure = new_figure(2.5 * len(benchmarks) + 3.8, 7.2)
    for part, (task, wrong) in zip(figure.subfigures(2, 1), TASKS.items(), strict=True):
        panels = part.subplots(1, len(benchmarks) + 1, width_ratios=[1] * len(benchmarks) + [0.8])
        for axes, bench in zip(panels, benchmarks, strict=False):
            draw_risks(axes, table[table["data"] == bench], task, f"{names[bench]}: {wrong}")
        found = table[(table["task"] == task) & (table["quantity"] == "difference")]
        labels = [text for name, text in AGAINST.items() if name in set(found["against"])]
        found = found.assign(
            label=pd.Categorical(found["against"].map(AGAINST), labels),
            bench=pd.Categorical(found["data"].map(names), list(names.values())),
            mean=found["value"],
        )
        draw_forest(panels[-1], found, "probability, < 0 better", group="bench")
        panels[-1].set_title("Area, hierarchical less …", fontsize=9, loc="left")
        panels[-1].set_ylim(-0.6, len(labels) + 0.1)
        panels[-1].legend(loc="upper left", fontsize=8, ncols=2, frameon=False, borderaxespad=0.0)
        handles, texts = panels[0].get_legend_handles_labels()
        part.legend(handles, texts, loc="outside lower center", ncols=3, fontsize=8, handlelength=3.2, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
