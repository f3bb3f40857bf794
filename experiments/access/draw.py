"""Draw what becomes of the queries: permitted or refused, inside or outside of what is granted, with counts."""

import argparse
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from bayeslink.plots.style import ACCENT, INK, new_figure, save

KINDS = (
    ("inside, permitted", "#9fc5e0", ""),
    ("outside, refused", INK, ""),
    ("inside, refused", "white", "////"),
    ("outside, permitted (leak)", ACCENT, "xx"),
)


def draw_outcomes(axes: Axes, table: pd.DataFrame, title: str) -> Axes:
    """Bars of shares, one row a form or role, with the count of each part that is not empty."""
    parts = {
        KINDS[0][0]: table["inside"] - table["refused_inside"],
        KINDS[1][0]: table["outside"] - table["leaks"],
        KINDS[2][0]: table["refused_inside"],
        KINDS[3][0]: table["leaks"],
    }
    places = list(range(len(table) - 1, -1, -1))
    start = 0.0 * table["cases"]
    for name, colour, hatch in KINDS:
        width = parts[name] / table["cases"]
        axes.barh(places, width, left=start, color=colour, hatch=hatch, edgecolor="0.3", linewidth=0.4, label=name)
        for place, count, left, share in zip(places, parts[name], start, width, strict=True):
            if count and share > 0.035:
                shade = "white" if colour == INK else "black"
                place_of_text = left + share / 2
                plain = {"facecolor": "white", "edgecolor": "none", "pad": 0.8} if hatch else None
                axes.text(
                    place_of_text, place, str(count), ha="center", va="center", fontsize=6.5, color=shade, bbox=plain
                )
        start = start + width
    axes.set_yticks(places, table["name"].str.replace("_", " "), fontsize=7.5)
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of queries", fontsize=8)
    axes.set_title(title, fontsize=9, loc="left")
    return axes


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    figure = new_figure(9.6, 4.8)
    panels = figure.subplot_mosaic([["a", "b"], ["a", "c"]], width_ratios=[1.35, 1.0], height_ratios=[1.2, 1.0])
    drawn = table[table["part"].isin(["common", "rare"])]
    draw_outcomes(panels["a"], drawn, "a  Random schemas and grants, by form (rare ones last)")
    spider = table[table["part"].str.startswith("spider")].copy()
    written = spider["part"].str.endswith("written")
    spider["name"] = spider["name"] + written.map({True: ", as written", False: ""})
    draw_outcomes(panels["b"], spider[written], "b  Spider dev, gold SQL as written, by role")
    draw_outcomes(panels["c"], spider[~written], "c  … with strings in single quotes")
    handles, names = panels["a"].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
