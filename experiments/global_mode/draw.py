"""Draw the global mode against single flips."""

import argparse
import json
from pathlib import Path

import pandas as pd

from bayeslink.plots.curves import draw_lines, label_panel, mark_value
from bayeslink.plots.style import new_figure, save


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    figures = json.loads(asked.table.with_name("table.json").read_text())["figures"]
    figure = new_figure(6.8, 2.9)
    left, right = figure.subplots(1, 2)
    draw_lines(left, table, "coupling", {"gain_one_added": "one distractor", "gain_both_added": "both distractors"})
    left.axhline(0.0, color="0.5", linewidth=0.8)
    mark_value(left, figures["mode_threshold"], "mode changes at 2/3", left=True)
    mark_value(left, figures["single_flip_threshold"], "flip at 1", height=0.1)
    label_panel(left, "a  Score gained by adding", "coupling (nats)", "H(R with added) − H(R)  (nats)", None)
    left.legend(loc="upper left", fontsize=8, frameon=False, bbox_to_anchor=(0.0, 0.88), handlelength=2.8)
    names = {
        "probability_relevant": "R",
        "probability_both_added": "R and both distractors",
        "probability_one_added": "R and one of them (each)",
    }
    draw_lines(right, table, "coupling", names)
    mark_value(right, figures["mode_threshold"], "")
    mark_value(right, figures["single_flip_threshold"], "")
    right.set_ylim(0.0, 0.8)
    label_panel(right, "b  Exact probability of each set", "coupling (nats)", "probability", None)
    right.legend(loc="upper left", fontsize=8, handlelength=2.8, facecolor="white", edgecolor="none", framealpha=1.0)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
