"""Draw what covariates of the intercept do for unseen databases, then each further term and training set."""

import argparse
from pathlib import Path

import pandas as pd

from bayeslink.plots.criticism import draw_forest
from bayeslink.plots.style import new_figure, save

PLACES = {
    ("lodo", "bird-dev"): "BIRD, left out",
    ("lodo", "spider-dev"): "Spider, left out",
    ("transfer", "bird-dev"): "BIRD, transfer",
    ("transfer", "spider-dev"): "Spider, transfer",
    ("transfer", "bird-dev-evidence"): "BIRD + ev., transfer",
}
VARIANTS = ("independent", "independent_hierarchical", "fixed", "pooled", "pooled_coupling", "hierarchical")
STARTS = {"plain": "plain: no covariates", "main": "main: covariates, correlated effects"}
FURTHER = {
    "plain": "plain",
    "main": "main",
    "shape": "uncorr. + graph covariates",
    "scale": "uncorr. + evidence's weight",
    "uncorrelated": "uncorrelated",
    "edge_types": "uncorr. + kinds of edges",
    "coupling_covariates": "uncorr. + coupling covariates",
    "both": "main + coupling covariates",
    "all_terms": "main + every term",
    "twins": "main, twins trained on",
}


NAMES = {variant: variant.replace("_", "\n", 1).replace("_", " ") for variant in VARIANTS}
TITLES = (
    "a  Joint log score: gain of hierarchical over …",
    "b  Mean shift, every variant",
    "c  Joint log score of hierarchical over main's",
    "d  Mean shift of hierarchical, further terms",
)
SHIFT = "mean of p − y"


def gains(rows: pd.DataFrame) -> pd.DataFrame:
    """Gain of `hierarchical` over each comparator within one setting."""
    others = [name for name in VARIANTS if rows.get(f"gain_over_{name}", pd.Series(dtype=float)).notna().any()]
    ends = {"mean": "", "lower": "_lower", "upper": "_upper"}
    parts = [
        rows.assign(label=NAMES[other], **{end: rows[f"gain_over_{other}{suffix}"] for end, suffix in ends.items()})
        for other in others
    ]
    found = pd.concat(parts)
    return found.assign(label=pd.Categorical(found["label"], [NAMES[name] for name in others]))


def shifts(rows: pd.DataFrame, labels: pd.Categorical) -> pd.DataFrame:
    """Mean shift with its interval."""
    return rows.assign(label=labels, mean=rows["mean_shift"], lower=rows["shift_lower"], upper=rows["shift_upper"])


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    table["start"] = pd.Categorical(table["setting"].map(STARTS), list(STARTS.values()))
    places = list(dict.fromkeys(zip(table["scheme"], table["data"], strict=True)))
    variants = [NAMES[variant] for variant in VARIANTS if variant in set(table["variant"])]
    terms = [text for setting, text in FURTHER.items() if setting in set(table["setting"])]
    figure = new_figure(1.7 + 1.5 * len(places), 10.2)
    panels = figure.subplots(4, len(places), squeeze=False, sharey="row", sharex="row", height_ratios=(3, 4, 5, 5))
    for column, place in zip(panels.T, places, strict=True):
        here = table[(table["scheme"] == place[0]) & (table["data"] == place[1])]
        both, ours = here[here["start"].notna()], here[here["variant"] == "hierarchical"]
        draw_forest(column[0], gains(both[both["variant"] == "hierarchical"]), "nats per question", group="start")
        labels = pd.Categorical(both["variant"].map(NAMES), variants)
        draw_forest(column[1], shifts(both, labels), SHIFT, group="start")
        labels = pd.Categorical(ours["setting"].map(FURTHER), terms)
        ends = {"mean": "estimate", "lower": "lower", "upper": "upper"}
        over = {end: ours[f"gain_over_main_{part}"].fillna(0.0) for end, part in ends.items()}
        draw_forest(column[2], ours.assign(label=labels, **over), "nats per question")
        draw_forest(column[3], shifts(ours, labels), SHIFT)
        for axes in column:
            axes.set_title(PLACES.get(place, ", ".join(place)), fontsize=9, loc="left")
            axes.locator_params(axis="x", nbins=3)
    for axes, title in zip(panels[:, 0], TITLES, strict=True):
        axes.set_title(f"{title}\n{axes.get_title(loc='left')}", fontsize=9, loc="left")
    handles, labels = panels[1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    save(figure, asked.out)


if __name__ == "__main__":
    main()
