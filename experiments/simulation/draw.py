"""Draw the mean shift of each family, what each variant costs, and in which cells the pattern holds or fails."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from bayeslink.plots.cells import draw_bands, draw_cells, draw_pairs, draw_shares
from bayeslink.plots.curves import label_panel
from bayeslink.plots.style import new_figure, save

VARIANTS = {
    "independent": "independent",
    "fixed": "imposed",
    "fixed_platt": "imposed + Platt",
    "pooled": "pooled",
    "hierarchical": "hierarchical",
}
FAMILIES = {
    "tree": "tree",
    "star": "star",
    "snowflake": "snowflake",
    "erdos_renyi": "Erdős–Rényi",
    "scale_free": "scale-free",
    "real": "real schemas",
}
LOOK = {"fixed": 0, "fixed_platt": 1, "hierarchical": 2, "pooled": 3, "independent": 4}
"""Look of each variant, the same in every panel."""
CELL = ["family", "num_tables", "coupling", "coupling_sd", "strength", "intercept_sd"]


def main(arguments: list[str] | None = None) -> None:
    """Table in, figure out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(arguments)
    table = pd.read_csv(asked.table)
    middle = {name: _middle(table[name]) for name in ("num_tables", "coupling_sd", "strength", "intercept_sd")}
    figure = new_figure(7.4, 9.0)
    panels = figure.subplots(4, 3)

    along = _at(table, middle)
    for place, (axes, family) in enumerate(zip(panels.ravel(), FAMILIES, strict=False)):
        draw_bands(
            axes,
            along[along["family"] == family],
            "coupling",
            "mean_shift",
            "variant",
            *_shown("fixed", "fixed_platt", "hierarchical"),
        )
        label_panel(axes, f"{'abcdef'[place]}  {FAMILIES[family]}", "mean coupling (nats)", "mean of p − y", None)
        axes.set_ylim(along["mean_shift_lower"].min() - 0.03, along["mean_shift_upper"].max() + 0.03)
    panels[0, 0].legend(loc="upper left", fontsize=7, frameon=False, handlelength=2.6)

    (lost, ece, recovered), (gain, shares, every) = panels[2], panels[3]
    below = _over_families(along, "gain_over_truth")
    draw_bands(lost, below, "coupling", "gain_over_truth", "variant", *_shown(*VARIANTS))
    label_panel(lost, "g  Joint log score less truth's", "mean coupling (nats)", "nats per question", None)
    truth = along[along["variant"] == "truth"].set_index(CELL)["ece"].rename("least")
    above = along.join(truth, on=CELL)
    above = _over_families(above.assign(ece=above["ece"] - above["least"]), "ece")
    draw_bands(ece, above, "coupling", "ece", "variant", *_shown(*VARIANTS))
    label_panel(ece, "h  Calibration error less truth's", "mean coupling (nats)", "ECE (probability)", None)

    fitted = table[table["variant"] == "hierarchical"]
    couplings = {value: f"coupling {value:g}" for value in sorted(fitted["coupling"].unique())[-4:]}
    rows = _at(fitted, {name: middle[name] for name in ("num_tables", "coupling_sd", "intercept_sd")})
    draw_cells(recovered, rows, "strength", "recovery_gain", "coupling", couplings)
    label_panel(
        recovered, "i  Weak tables recovered", "strength (log-odds per sd)", "gain at matched size (share)", None
    )
    rows = _at(fitted, {name: middle[name] for name in ("num_tables", "strength", "intercept_sd")})
    draw_cells(gain, rows, "coupling_sd", "gain_over_pooled_coupling", "coupling", couplings)
    label_panel(
        gain, "j  Hierarchical over pooled coupling", "sd of couplings (nats)", "joint log score (nats)", "upper left"
    )

    refitted = ("fixed_platt", "pooled", "hierarchical")
    draw_shares(shares, _restored(table, refitted), "family", *_shown(*refitted))
    label_panel(shares, "k  Restored, of cells with shift", "share of cells", "", None)
    imposed = table[table["variant"] == "fixed"].set_index(CELL)["mean_shift"].rename("imposed")
    pairs = _shown("fixed_platt", "hierarchical")
    draw_pairs(every, table.join(imposed, on=CELL), "imposed", "mean_shift", "variant", *pairs)
    label_panel(every, "l  Every cell", "mean of p − y, imposed", "mean of p − y, refitted", "lower right")
    for axes in (lost, ece, recovered, gain, every):
        axes.legend(*axes.get_legend_handles_labels(), loc="best", fontsize=6.5, frameon=False, handlelength=2.2)
    save(figure, asked.out)


def _shown(*variants: str) -> tuple[dict[str, str], list[int]]:
    """Labels and looks of variants."""
    return {name: VARIANTS[name] for name in variants}, [LOOK[name] for name in variants]


def _middle(values: pd.Series) -> float:
    """The value in the middle of those of the grid."""
    distinct = sorted(values.unique())
    return distinct[len(distinct) // 2]


def _at(table: pd.DataFrame, values: dict[str, float]) -> pd.DataFrame:
    for name, value in values.items():
        table = table[table[name] == value]
    return table


def _over_families(table: pd.DataFrame, score: str) -> pd.DataFrame:
    """Mean over families with the least and the greatest of them."""
    found = table.groupby(["coupling", "variant"])[score].agg(["mean", "min", "max"]).reset_index()
    return found.rename(columns={"mean": score, "min": f"{score}_lower", "max": f"{score}_upper"})


def _restored(table: pd.DataFrame, variants: Sequence[str]) -> pd.DataFrame:
    """For each family the share of its shifted cells in which a variant's shift is smaller, its interval holding 0."""
    rows = table[table["cell_shifted"] == 1]
    held = rows.assign(held=rows["smaller"] * rows["holds_0"]).pivot_table("held", "family", "variant")
    shown = [family for family in FAMILIES if family in set(table["family"])]
    found = held.reindex(index=shown, columns=list(variants)).fillna(0.0)
    return found.rename(index=FAMILIES).rename_axis(index="family").reset_index()


if __name__ == "__main__":
    main()
