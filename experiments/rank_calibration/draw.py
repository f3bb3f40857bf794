"""Draw the ECDF difference of every parameter under every fit, each in the fit's simultaneous band."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.ranks import draw_rank_envelope
from bayeslink.plots.style import new_figure, save

FITS = {
    "nested": "nested Laplace",
    "nuts": "NUTS",
    "laplace": "marginal Laplace",
    "joint_mode": "joint mode",
    "broken": "broken on purpose",
}
SYMBOLS = {
    "alpha": "α",
    "gamma_0": "γ₀",
    "gamma_1": "γ₁",
    "beta": "β",
    "log_sigma_alpha": "log σ_α",
    "log_sigma_beta": "log σ_β",
    "alpha_d": "all α_d",
    "beta_d": "all β_d",
    "u": "all u_d",
    "v": "all v_d",
}


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    parts = dict(iter(table.groupby(["parameter", "fit"])))
    figure = new_figure(6.8, 8.6)
    panels = figure.subplots(len(SYMBOLS), len(FITS), sharex=True, sharey="row", squeeze=False)
    for row, (parameter, symbol) in zip(panels, SYMBOLS.items(), strict=True):
        for axes, fit in zip(row, FITS, strict=True):
            draw_rank_envelope(axes, parts[parameter, fit])
            axes.tick_params(labelsize=6)
        row[0].set_ylabel(symbol, fontsize=8)
    for axes, title in zip(panels[0], FITS.values(), strict=True):
        axes.set_title(title, fontsize=8)
    for axes in panels[-1]:
        axes.set_xticks([0.0, 0.5, 1.0], ["0", "½", "1"])
    figure.supxlabel("share z of the possible ranks", fontsize=8)
    figure.supylabel("share of true ranks below z, less z (probability)", fontsize=8)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
