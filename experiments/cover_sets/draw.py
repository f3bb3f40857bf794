"""Draw coverage against size: our covers at their own levels, and beside schemagate at its mean sizes."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.style import DEV_SETS, new_figure, save

METHODS = {
    "hierarchical": "hierarchical",
    "independent_hierarchical": "independent hierarchical",
    "bm25": "BM25",
    "embedding_cosine": "embeddings",
}


def where(rows: pd.DataFrame) -> pd.Series:
    """Benchmark, and whether descriptions were read."""
    names = rows["data"].map(DEV_SETS)
    return names + rows["list"].map({"learned_names": ", names only"}).fillna("")


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    table = table[table["variant"].isin(METHODS)].copy()
    table["variant"] = pd.Categorical(table["variant"].map(METHODS), list(METHODS.values())).remove_unused_categories()
    own, beside = table[table["peer"].isna()], table[table["peer"].notna()]
    figure = new_figure(10.2, 5.4)
    panels = figure.subplots(1, 3)
    ends = {"mean": "coverage", "lower": "coverage_lower", "upper": "coverage_upper"}
    rows = own.assign(label=where(own) + ", " + (100 * own["level"]).round().astype(int).astype(str) + " %")
    rows = rows[rows["variant"] == METHODS["hierarchical"]]
    draw_forest(panels[0], rows.assign(**{end: rows[name] for end, name in ends.items()}), "share of questions")
    panels[0].plot(rows["level"], range(len(rows) - 1, -1, -1), linestyle="", marker="|", color="0.2", markersize=11)
    labels = where(beside) + ", k = " + beside["k"].astype(str)
    both = beside.assign(label=labels, group=beside["variant"].astype(str), **{e: beside[n] for e, n in ends.items()})
    peer = both[both["variant"] == METHODS["hierarchical"]]
    peer = peer.assign(group="schemagate", **dict.fromkeys(ends, peer["peer_coverage"]))
    order = [name for name in (*METHODS.values(), "schemagate") if name in {*both["group"], "schemagate"}]
    every = pd.concat([both, peer])
    every["group"] = pd.Categorical(every["group"], order)
    draw_forest(panels[1], every, "share of questions", group="group")
    gains = every[every["gain"].notna() & (every["group"] != "schemagate")]
    gains = gains.assign(mean=gains["gain"], lower=gains["gain_lower"], upper=gains["gain_upper"])
    gains["group"] = gains["group"].cat.remove_unused_categories()
    draw_forest(panels[2], gains, "difference of shares", group="group")
    for axes in panels[:2]:
        axes.set_xlim(max(0.0, float(table["coverage_lower"].min()) - 0.05), 1.005)
    titles = (
        "a  All gold inside the cover at its level",
        "b  … at the peer's mean size",
        "c  … less schemagate's",
    )
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title, fontsize=9, loc="left")
        axes.locator_params(axis="x", nbins=4)
    panels[2].set_yticklabels([])
    handles, names = panels[1].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
