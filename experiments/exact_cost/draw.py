"""Draw the time per question by method and size, and the growth with the number of tables."""

import argparse
import json
from pathlib import Path

import pandas as pd

from bayeslink.plots.curves import draw_lines, draw_power_law, label_panel
from bayeslink.plots.style import new_figure, save

NAMES = {
    "elimination": "elimination (ours)",
    "enumeration": "enumeration",
    "enumeration_blocked": "enumeration, blocks",
    "dwave": "dwave-samplers",
    "pgmpy": "pgmpy",
}


def main(arguments: list[str] | None = None) -> None:
    """Timings in, figure out; the timings lie beside the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    timings = json.loads(asked.table.with_name("timings.json").read_text())
    rows = pd.DataFrame(timings["side_by_side"]).query("not absent")
    wide = rows.pivot_table(index=["tables", "edges"], columns="method", values="ms_per_question")
    kinds = [name for name in wide.columns if name.startswith("elimination")]
    wide["elimination"] = wide[kinds].min(axis=1)
    # Of two graphs of one size, the denser is in the table only.
    wide = wide.reset_index().drop_duplicates("tables")
    figure = new_figure(6.8, 3.2)
    left, right = figure.subplots(1, 2)
    draw_lines(left, wide, "tables", {name: label for name, label in NAMES.items() if name in wide}, markers=True)
    left.set_xscale("log")
    left.set_yscale("log")
    left.set_xticks([8, 12, 20, 60, 120], ["8", "12", "20", "60", "120"])
    left.minorticks_off()
    left.set_ylim(top=left.get_ylim()[1] * 30)
    label_panel(left, "a  Log Z and all marginals", "tables", "time per question (ms)", None)
    left.legend(fontsize=7, frameon=False, loc="upper left", ncols=2, columnspacing=0.6, handlelength=2.2)
    growth = pd.DataFrame(timings["growth"])
    growth["ms"] = 1e3 * growth["seconds"]
    growth["mb"] = growth["temporary_bytes"] / 1e6
    slope = timings["growth_slope"]
    draw_lines(right, growth, "tables", {"ms": f"time (ms), slope {slope:.2f}", "mb": "memory (MB)"}, markers=True)
    middle = growth.iloc[len(growth) // 2]
    draw_power_law(right, growth["tables"].tolist(), (float(middle["tables"]), 3 * float(middle["ms"])), 1.0, "slope 1")
    right.set_xscale("log")
    right.set_yscale("log")
    label_panel(
        right, "b  Growth at width 3, 100 questions", "tables", "time of the batch (ms), memory (MB)", "upper left"
    )
    save(figure, asked.out)


if __name__ == "__main__":
    main()
