"""Draw precision and recall of every variant and baseline, and what the hierarchical posterior does beside them."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.style import new_figure, save

BENCHMARKS = {"bird-dev": "BIRD dev", "spider-dev": "Spider dev"}
NAMES = {
    "independent": "independent",
    "independent_hierarchical": "independent hierarchical",
    "fixed": "fixed coupling",
    "pooled": "pooled",
    "pooled_coupling": "pooled coupling",
    "hierarchical": "hierarchical",
    "hierarchical_never_empty": "hierarchical, never empty",
    "hierarchical_tuned_cut": "hierarchical, tuned cut",
    "temperature": "temperature",
    "platt": "Platt",
    "tuned_cut": "independent, tuned cut",
    "top_k": "top k",
    "top_p": "top p",
    "beta_binomial": "Beta-Binomial",
    "beta_binomial_platt": "Beta-Binomial, Platt",
    "shortest_path": "shortest path",
    "tuned_shortest_path": "shortest path, tuned cut",
    "shortest_path_on_independent_hierarchical": "shortest path, indep. hier.",
    "steiner": "Steiner tree",
    "expansion": "foreign-key expansion",
}
PANELS = {
    "a  Each method's own rule": ("", "share of tables"),
    "b  Less hierarchical's": ("_difference", "difference of shares"),
    "c  Less its never empty": ("_difference_never_empty", "difference of shares"),
}


def long(rows: pd.DataFrame, end: str) -> pd.DataFrame:
    """One row for each method and score."""
    parts = []
    for score in ("precision", "recall"):
        columns = {f"{score}{end}": "mean", f"{score}{end}_lower": "lower", f"{score}{end}_upper": "upper"}
        parts.append(rows[["label", *columns]].rename(columns=columns).assign(score=score))
    return pd.concat(parts)


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    shown = [name for name in NAMES if name in set(table["method"])]
    table = table[table["method"].isin(shown)]
    table["label"] = pd.Categorical(table["method"].map(NAMES), [NAMES[name] for name in shown])
    sets = list(dict.fromkeys(table["data"]))
    figure = new_figure(8.4, 0.6 + 4.2 * len(sets))
    panels = figure.subplots(len(sets), len(PANELS), squeeze=False, sharey="row", sharex="col")
    for row, data in zip(panels, sets, strict=True):
        rows = table[table["data"] == data]
        for axes, (title, (end, unit)) in zip(row, PANELS.items(), strict=True):
            draw_forest(axes, long(rows, end), unit, group="score")
            axes.set_title(f"{title}\n{BENCHMARKS.get(data, data)}", fontsize=9, loc="left")
            axes.locator_params(axis="x", nbins=6)
    for axes in panels[:, 0]:
        axes.set_xlim(table["precision_lower"].min() - 0.05, 1.0)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
