"""Draw exact matches against the number of questions asked, and the gain of the first over asking the naive one."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.curves import draw_lines, label_panel
from bayeslink.plots.style import DEV_SETS, new_figure, save

LISTS = {"embedding": "the paper's three", "boosted": "trees"}
RULES = {"rivals": "between the rivals", "entropy": "the most uncertain table"}


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    table = table[table["variant"] == "hierarchical"].copy()
    sets, lists = list(dict.fromkeys(table["data"])), list(dict.fromkeys(table["list"]))
    figure = new_figure(2.6 * len(sets) + 3.2, 3.8)
    panels = figure.subplots(1, len(sets) + 1, width_ratios=[1.0] * len(sets) + [1.2])
    for axes, data in zip(panels, sets, strict=False):
        here = table[table["data"] == data]
        lines = here["list"].map(LISTS) + ", " + here["rule"].map(RULES)
        wide = here.assign(line=lines).pivot_table(index="asked", columns="line", values="exact").reset_index()
        names = [f"{LISTS[name]}, {rule}" for name in lists for rule in RULES.values()]
        draw_lines(axes, wide, "asked", {name: name for name in names})
        axes.set_ylim(max(0.0, float(table["exact"].min()) - 0.05), 1.0)
        axes.set_xticks(sorted(set(table["asked"])))
        label_panel(axes, DEV_SETS[data], "questions asked", "most probable set = gold", None)
    first = table[(table["asked"] == 1) & (table["rule"] == "rivals")]
    parts = []
    for column, name in {"gain": "over no question", "over_entropy": "over the most uncertain"}.items():
        ends = {end: first[source] for end, source in zip(("mean", "lower", "upper"),
                (column, f"{column}_lower", f"{column}_upper"), strict=True)}  # fmt: skip
        parts.append(
            first.assign(label=first["list"].map(LISTS) + ",\n" + first["data"].map(DEV_SETS), group=name, **ends)
        )
    draw_forest(panels[-1], pd.concat(parts), "difference of shares", group="group")
    panels[-1].set_title("One question, gain", fontsize=9, loc="left")
    panels[-1].legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.3, -0.2))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
