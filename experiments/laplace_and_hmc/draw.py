"""Draw every population parameter by method, and the database effects' spreads against NUTS."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.criticism import draw_forest, draw_strips
from bayeslink.plots.style import new_figure, save

FITS = {"nuts": "NUTS", "nested": "nested Laplace", "laplace": "marginal Laplace", "joint_mode": "joint mode"}
SETS = {"bird": "BIRD dev", "spider": "Spider dev"}
SYMBOLS = {"alpha": "α", "gamma": "γ", "beta": "β"}
SYMBOLS |= {"log sigma_alpha": r"log $\sigma_\alpha$", "log sigma_beta": r"log $\sigma_\beta$"}
EFFECTS = {"alpha_d": r"$\alpha_d$", "beta_d": r"$\beta_d$"}


def symbol(parameter: str) -> str:
    """Name of a population parameter on the axis."""
    site, _, entry = parameter.partition("[")
    return f"{SYMBOLS[site]}  {entry.rstrip(']').replace('_', ' ')}".strip()


def estimates(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per parameter and method: mean and mean -+ 2 standard deviations."""
    parts = []
    for fit, name in FITS.items():
        mean, deviation = rows[f"{fit}_mean"], rows[f"{fit}_sd"]
        ends = {"mean": mean, "lower": mean - 2 * deviation, "upper": mean + 2 * deviation}
        parts.append(pd.DataFrame({"label": rows["parameter"].map(symbol), "fit": name} | ends))
    return pd.concat(parts)


def ratios(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per database effect and method: its standard deviation over that of NUTS."""
    parts = []
    for site, label in EFFECTS.items():
        mine = rows[rows["parameter"].str.startswith(f"{site}[")]
        for fit, name in FITS.items():
            if fit != "nuts":
                values = mine[f"{fit}_sd"] / mine["nuts_sd"]
                parts.append(pd.DataFrame({"label": f"{label}  {name}", "value": values}))
    return pd.concat(parts)


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    shown = list(dict.fromkeys(table["data"]))
    figure = new_figure(4.6 * len(shown), 7.4)
    panels = figure.subplots(2, len(shown), squeeze=False, height_ratios=(9, 5))
    effect = table["parameter"].str.startswith(tuple(f"{site}[" for site in EFFECTS))
    for (top, bottom), name in zip(panels.T, shown, strict=True):
        mine = table["data"] == name
        draw_forest(top, estimates(table[mine & ~effect]), "mean ± 2 sd (log-odds; log of σ)", group="fit")
        top.set_title(f"{SETS.get(name, name)}: population parameters", fontsize=9, loc="left")
        spreads = ratios(table[mine & effect])
        draw_strips(bottom, spreads, "sd / sd of NUTS, a dot for each database (ratio)", 1.0, (0.5, 1.5))
        bottom.set_title(f"{SETS.get(name, name)}: database effects", fontsize=9, loc="left")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2 * len(shown), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
