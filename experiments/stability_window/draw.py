"""Draw the stability window of the worked example."""

import argparse
import json
from pathlib import Path

import pandas as pd

from bayeslink.plots.curves import draw_lines, label_panel, shade_window
from bayeslink.plots.style import new_figure, save


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    figures = json.loads(asked.table.with_name("table.json").read_text())["figures"]
    window = figures["window_lower"], figures["window_upper"]
    figure = new_figure(6.8, 3.1)
    left, right = figure.subplots(1, 2)
    names = {"junction_log_odds": "junction (relevant)", "distractor_log_odds": "distractor (not relevant)"}
    shade_window(left, *window, f"stable\n{window[0]:.2f} to {window[1]:.2f}")
    draw_lines(left, table, "coupling", names)
    left.axhline(0.0, color="0.5", linewidth=0.8)
    left.set_ylim(top=2.9)
    label_panel(
        left, "a  One flip from the relevant set", "coupling (nats)", "log-odds of being selected", "lower right"
    )
    names = {
        "salient_probability": "salient",
        "junction_probability": "junction",
        "distractor_probability": "distractor",
        "relevant_set_probability": "exactly the relevant set",
    }
    shade_window(right, *window, "")
    draw_lines(right, table, "coupling", names)
    right.set_ylim(0.0, 1.5)
    right.set_yticks([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    label_panel(right, "b  Exact probabilities", "coupling (nats)", "probability", "upper left")
    save(figure, asked.out)


if __name__ == "__main__":
    main()
