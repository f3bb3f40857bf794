"""Draw the rankings by attention, what it adds to the posterior, and how every head of the adapter ranks."""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.style import DEV_SETS, new_figure, save

NAMES = {
    "u": "attention, untrained",
    "s": "attention, trained",
    "bm25": "BM25",
    "minilm": "MiniLM",
    "posterior_lexical": "posterior, lexical",
    "posterior_embedding": "posterior, embeddings",
    "posterior_attention": "posterior, attention",
}
GAINS = {
    "paper_hierarchical_joint_log_score": "the paper's channels",
    "trees_hierarchical_joint_log_score": "trees",
}


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    sets = [name for name in DEV_SETS if name in set(table["data"])]
    table["place"] = pd.Categorical(table["data"].map(DEV_SETS), [DEV_SETS[name] for name in sets])
    figure = new_figure(9.6, 6.4)
    panels = figure.subplots(2, 2).ravel()
    for axes, part in zip(panels, ("tables", "columns"), strict=False):
        rows = table[table["part"] == part].rename(columns={"value": "mean"})
        order = [name for name in NAMES if name in set(rows["name"])][::-1]
        rows["label"] = pd.Categorical(rows["name"].map(NAMES), [NAMES[name] for name in order])
        draw_forest(axes, rows, "mean average precision", group="place")
        axes.set_xlim(max(0.0, float(rows["lower"].min()) - 0.02), 1.0)
    rows = table[(table["part"] == "gain") & table["name"].isin(GAINS)].rename(columns={"value": "mean"})
    rows["label"] = pd.Categorical(rows["name"].map(GAINS), list(GAINS.values())[::-1])
    draw_forest(panels[2], rows, "joint log score gained, nats", group="place")
    heads = table[table["part"] == "heads"]["name"].str.extract(r"layer_(\d+)_head_(\d+)").astype(int)
    precision = np.full((heads[0].max() + 1, heads[1].max() + 1), np.nan)
    precision[heads[0], heads[1]] = table.loc[heads.index, "value"]
    image = panels[3].imshow(precision.T, aspect="auto", cmap="cividis", vmin=0, vmax=1)
    panels[3].set_xlabel("layer")
    panels[3].set_ylabel("head")
    figure.colorbar(image, ax=panels[3], label="column mAP")
    titles = ("a  Ranking of tables", "b  Ranking of columns", "c  Attention added to ...", "d  Every head, trained")
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title, fontsize=9, loc="left")
        axes.locator_params(axis="x", nbins=5)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
