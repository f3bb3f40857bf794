"""Draw the share of questions whose gold is among the tables returned from the pool, beside schemagate."""

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
    names = list(dict.fromkeys(table["pool"]))
    figure = new_figure(4.6 * len(names), 3.4)
    panels = figure.subplots(1, len(names), squeeze=False, sharex=True)[0]
    for axes, name in zip(panels, names, strict=True):
        sizes = table[(table["part"] == "size") & (table["pool"] == name)]
        label = sizes["mean_size"].map("{:.1f} tables".format)
        ours = sizes.assign(label=label, mean=sizes["value"], method="hierarchical, pooled")
        peer = sizes[sizes["peer_value"].notna()]
        ends = dict.fromkeys(("mean", "lower", "upper"), peer["peer_value"])
        peer = peer.assign(label=label[peer.index], method="schemagate", **ends)
        parts = [part for part in (ours, peer) if len(part)]
        both = pd.concat([part[["label", "mean", "lower", "upper", "method"]] for part in parts])
        draw_forest(axes, both, "share of questions with all gold tables", group="method")
        axes.set_xlim(max(0.0, float(both["lower"].min()) - 0.05), 1.01)
        axes.locator_params(axis="x", nbins=5)
        axes.set_title(name.replace("_", " + "), fontsize=9, loc="left")
        axes.legend(loc="lower left", fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
