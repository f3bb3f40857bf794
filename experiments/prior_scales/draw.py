"""Draw what moves with the prior scales: probabilities, scores, and the parameters themselves."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.curves import draw_lines, label_panel
from bayeslink.plots.style import new_figure, save

SETS = {"bird": "BIRD dev", "spider": "Spider dev"}
SITES = {"alpha": "α", "beta": "β", "sigma_alpha": r"$\sigma_\alpha$", "sigma_beta": r"$\sigma_\beta$"}


def estimates(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per parameter and factor: mean and mean -+ one standard deviation."""
    parts = []
    for site, label in SITES.items():
        mean, deviation = rows[f"{site}_mean"], rows[f"{site}_sd"]
        ends = {"mean": mean, "lower": mean - deviation, "upper": mean + deviation}
        factors = rows["factor"].map("scales × {:g}".format)
        parts.append(pd.DataFrame({"label": label, "factor": factors} | ends))
    return pd.concat(parts)


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    table = table.sort_values(["data", "factor"])
    shown = [name for name in SETS if name in set(table["data"])]
    usual = table[table["factor"] == 1.0].set_index("data")["unseen_joint_log_score"]
    table["unseen_change"] = table["unseen_joint_log_score"] - table["data"].map(usual)
    columns = ["marginal_change_mean", "marginal_change_worst", "joint_change", "unseen_change"]
    wide = table.pivot_table(index="factor", columns="data", values=columns)
    wide.columns = [f"{column}_{name}" for column, name in wide.columns]
    wide = wide.reset_index()
    figure = new_figure(8.6, 6.4)
    (marginals, scores), below = figure.subplots(2, 2)
    for axes, parts in (
        (marginals, {"marginal_change_worst": "worst", "marginal_change_mean": "mean"}),
        (scores, {"joint_change": "in sample", "unseen_change": "unseen databases"}),
    ):
        lines = {f"{part}_{name}": f"{SETS[name]}, {label}" for name in shown for part, label in parts.items()}
        lines = {column: label for column, label in lines.items() if column in wide}
        draw_lines(axes, wide, "factor", lines, markers=True)
        axes.set_xscale("log", base=2)
        axes.set_xticks(wide["factor"], [f"{factor:g}" for factor in wide["factor"]], minor=False)
    label_panel(
        marginals, "a  Change of a table's probability", "factor on every prior scale", "|change| (probability)"
    )
    label_panel(scores, "b  Change of the joint log score", "factor on every prior scale", "nats per question")
    for axes, name, letter in zip(below, shown, "cd", strict=False):
        mine = estimates(table[table["data"] == name])
        draw_forest(axes, mine, "posterior mean ± sd (log-odds, nats)", group="factor")
        axes.set_title(f"{letter}  Parameters, {SETS[name]}", fontsize=9, loc="left")
    for axes in below[len(shown) :]:
        axes.remove()
    handles, labels = below[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
