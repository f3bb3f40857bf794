"""Draw the share of questions with all gold tables against the mean number of tables shown, one panel a set."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.curves import draw_lines, label_panel
from bayeslink.plots.style import BENCHMARKS, new_figure, save

LINES = {
    "hierarchical": "hierarchical",
    "peer": "schemagate",
    "top_k": "hierarchical, same length",
    "bm25": "BM25",
    "embedding_cosine": "embeddings",
}


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    table = table[table["unit"] == "tables"]
    sets = [name for name in BENCHMARKS if name in set(table["set"])]
    figure = new_figure(11.0, 2.9 if len(sets) <= 4 else 5.6)
    panels = figure.subplots(1 if len(sets) <= 4 else 2, min(len(sets), 4) if len(sets) <= 4 else 4, squeeze=False)
    for axes, name in zip(panels.flat, sets, strict=False):
        rows = table[table["set"] == name]
        wide = rows.pivot_table(index=["k", "peer_cost"], columns="method", values="coverage").reset_index()
        wide["peer"] = rows.groupby("k")["peer_coverage"].first().reindex(wide["k"]).to_numpy()
        shown = {column: label for column, label in LINES.items() if column in wide}
        draw_lines(axes, wide.sort_values("peer_cost"), "peer_cost", shown, markers=True, width=1.2)
        questions = int(rows["questions"].iloc[0])
        label_panel(
            axes, f"{BENCHMARKS[name]} ({questions} questions)", "mean tables shown", "all gold tables", legend=None
        )
        axes.set_ylim(-0.03, 1.03)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    spare = list(panels.flat)[len(sets) :]
    for axes in spare:
        axes.set_axis_off()
    if spare:
        spare[0].legend(handles, labels, loc="center", fontsize=8, frameon=False)
    else:
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
