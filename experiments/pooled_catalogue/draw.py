"""Draw the share of questions whose gold is among the tables returned, beside schemagate, and what the score reads."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.style import new_figure, save


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    figure = new_figure(8.6, 4.6)
    panels = figure.subplots(1, 2, width_ratios=(1.2, 1.0))
    sizes = table[table["part"] == "size"]
    label = sizes["mean_size"].map("{:.1f} tables".format)
    rows = sizes.assign(label=label, mean=sizes["value"], method="hierarchical, pooled")
    peer = sizes[sizes["peer_value"].notna()]
    ends = dict.fromkeys(("mean", "lower", "upper"), peer["peer_value"])
    peer = peer.assign(label=label[peer.index], method="schemagate", **ends)
    levels = table[table["part"] == "level"]
    text = (100 * levels["level"]).map("{:.0f} %".format) + ", " + levels["mean_size"].map("{:.1f} tables".format)
    levels = levels.assign(label=text, mean=levels["value"], method="hierarchical, pooled")
    parts = [part for part in (rows, peer, levels) if len(part)]
    both = pd.concat([part[["label", "mean", "lower", "upper", "method"]] for part in parts])
    draw_forest(panels[0], both, "share of questions with all gold tables", group="method")
    panels[0].set_xlim(max(0.0, float(both["lower"].min()) - 0.05), 1.005)
    panels[0].legend(loc="lower left", fontsize=8, frameon=False)
    weights = table[table["part"] == "weight"].sort_values("value", ascending=False, kind="stable")
    ends = dict.fromkeys(("mean", "lower", "upper"), weights["value"])
    draw_forest(panels[1], weights.assign(label=weights["name"].str.replace("_", " "), **ends), "nats per deviation")
    for axes, title in zip(panels, ("a  All gold among the tables of a pool", "b  Weights of the score"), strict=True):
        axes.set_title(title, fontsize=9, loc="left")
        axes.locator_params(axis="x", nbins=5)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
