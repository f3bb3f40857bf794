"""Draw the reliability of each model, the size along the coupling, and calibration error and mean shift of all."""

import argparse
from pathlib import Path

import pandas as pd
from matplotlib.figure import SubFigure

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.curves import draw_lines, label_panel
from bayeslink.plots.reliability import draw_counts, draw_reliability
from bayeslink.plots.style import INK, LOOKS, new_figure, save

BENCHMARKS = {"bird": "BIRD", "spider": "Spider"}
SHOWN = {
    "independent": "independent",
    "fixed_2": "fixed at 2",
    "fixed_2_temperature": "fixed at 2, temperature",
    "fixed_2_platt": "fixed at 2, Platt",
    "pooled": "pooled",
    "hierarchical": "hierarchical",
}
MODELS = {
    "independent": "independent",
    "independent_hierarchical": "indep. hierarchical",
    "fixed": "fixed at 0.6",
    "fixed_temperature": "fixed at 0.6, temp.",
    "fixed_platt": "fixed at 0.6, Platt",
    "fixed_2": "fixed at 2",
    "fixed_2_temperature": "fixed at 2, temp.",
    "fixed_2_platt": "fixed at 2, Platt",
    "pooled": "pooled",
    "hierarchical": "hierarchical",
}
SCHEMES = {"known": "new questions", "unseen": "new database"}


def draw_diagrams(figure: SubFigure, rows: pd.DataFrame, title: str, models: list[str]) -> None:
    """A reliability diagram with its counts for each model shown."""
    panels = figure.subplots(2, len(models), squeeze=False, sharex=True, sharey="row", height_ratios=(4, 1))
    for (upper, lower), model in zip(panels.T, models, strict=True):
        bins = rows[(rows["model"] == model) & (rows["quantity"] == "reliability")]
        draw_reliability(upper, bins.rename(columns={"value": "frequency"}))
        draw_counts(lower, bins)
        upper.set_title(SHOWN[model], fontsize=8, loc="left")
        upper.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    panels[0, 0].set_title(f"{title}\n{SHOWN[models[0]]}", fontsize=8, loc="left")
    panels[0, 0].set_ylabel("share gold", fontsize=8)
    panels[1, 0].set_ylabel("pairs", fontsize=8)
    figure.supxlabel(
        "stated probability of a (question, table) pair      (band: 95 %; cross: the band leaves out the diagonal)",
        fontsize=8,
    )


def draw_curves(figure: SubFigure, known: pd.DataFrame, benchmarks: list[str]) -> None:
    """Size along the coupling, observed and predicted, for each benchmark; then the compensating intercepts."""
    panels = figure.subplots(1, len(benchmarks) + 1)
    for axes, bench in zip(panels, benchmarks, strict=False):
        here = known[(known["data"] == bench) & known["model"].isin(["curve", "gold"])]
        observed = here[(here["quantity"] == "size") & (here["model"] == "curve")]
        axes.fill_between(observed["coupling"], observed["lower"], observed["upper"], color="#9fc5e0", alpha=0.5, lw=0)
        wide = here[here["model"] == "curve"].pivot_table(index="coupling", columns="quantity", values="value")
        lines = {"size": "held out, 95 % band", "size_predicted": "predicted by ∫ Cov(N, M)"}
        draw_lines(axes, wide.reset_index(), "coupling", lines)
        gold = here.loc[here["model"] == "gold", "value"].item()
        axes.axhline(gold, color=INK, linewidth=0.8, linestyle=":", label="gold")
        axes.set_ylim(bottom=0.0)
        title = f"{BENCHMARKS.get(bench, bench)}: selected tables, fixed intercept"
        label_panel(axes, title, "coupling (nats)", "E[N] per question (tables)", "lower right")
    last = panels[-1]
    for bench, (colour, dashes, marker, filling) in zip(benchmarks, LOOKS, strict=False):
        here = known[(known["data"] == bench) & (known["quantity"] == "intercept")]
        path, fitted = (here[here["model"] == model] for model in ("curve", "pooled"))
        name = BENCHMARKS.get(bench, bench)
        last.plot(path["coupling"], path["value"], color=colour, linestyle=dashes, label=f"{name}: α(β)")
        look = {"color": colour, "marker": marker, "markerfacecolor": filling, "markersize": 6, "linestyle": ""}
        last.plot(fitted["coupling"], fitted["value"], **look, label=f"{name}: pooled fit")
    last.spines[["top", "right"]].set_visible(False)
    label_panel(last, "Intercept that restores the size", "coupling (nats)", "α (log-odds)", "lower left")


def draw_scores(figure: SubFigure, table: pd.DataFrame, benchmarks: list[str]) -> None:
    """Forests of calibration error and of mean shift."""
    panels = figure.subplots(1, 2 * len(benchmarks), squeeze=False, sharey=True)[0]
    labels = [name for model, name in MODELS.items() if model in set(table["model"])]
    schemes = [name for scheme, name in SCHEMES.items() if scheme in set(table["scheme"])]
    for place, bench in enumerate(benchmarks):
        here = table[(table["data"] == bench) & table["model"].isin(MODELS)]
        units = {"ece": "calibration error", "mean_shift": "mean of p − y"}
        for axes, (score, unit) in zip(panels[2 * place :], units.items(), strict=False):
            rows = here[here["quantity"] == score].rename(columns={"value": "mean"})
            rows = rows.assign(
                label=pd.Categorical(rows["model"].map(MODELS), labels),
                scheme=pd.Categorical(rows["scheme"].map(SCHEMES), schemes),
            )
            draw_forest(axes, rows, f"{unit} (probability)", group="scheme")
            axes.set_title(BENCHMARKS.get(bench, bench), fontsize=9, loc="left")
            axes.locator_params(axis="x", nbins=4)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), fontsize=8, frameon=False)


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    known = table[table["scheme"] == "known"]
    benchmarks = list(dict.fromkeys(table["data"]))
    models = [model for model in SHOWN if model in set(known["model"])]
    heights = [2.3] * len(benchmarks) + [2.5, 3.0]
    figure = new_figure(9.6, sum(heights))
    parts = figure.subfigures(len(heights), 1, height_ratios=heights)
    for part, bench in zip(parts, benchmarks, strict=False):
        draw_diagrams(part, known[known["data"] == bench], BENCHMARKS.get(bench, bench), models)
    draw_curves(parts[-2], known, benchmarks)
    draw_scores(parts[-1], table, benchmarks)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
