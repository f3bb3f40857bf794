# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Reading the posterior
#
# What comes back for a question is a distribution over sets of tables. This notebook asks it six things: which tables,
# why, which sets, how many tables make it safe, what the graph has to do with it, and when it would rather ask.

# %%
# %matplotlib inline
import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd

from bayeslink import SchemaLinker

root = next(folder for folder in (Path.cwd(), *Path.cwd().parents) if (folder / "data" / "sample").is_dir())
path = Path(tempfile.mkdtemp()) / "shop.sqlite"
with closing(sqlite3.connect(path)) as connection:
    connection.executescript((root / "data" / "sample" / "databases" / "shop.sql").read_text())
linker = SchemaLinker.from_database(str(path), channels="lexical")
link = linker.link("Which customers bought which products?")
link

# %%
# Each log-odds has parts: what every channel adds, and what the neighbours lend. `transactions` needs the latter.
parts = [*link.channels, "from_neighbours"]
link.to_frame().set_index("table")[["probability", "independent_probability", *parts]].round(2)

# %%
link.plot()

# %% [markdown]
# The sets themselves. A table can be likely while no single set is: the mode has a probability, too.

# %%
pd.DataFrame([(", ".join(tables) or "no table", p) for tables, p in link.top(6)], columns=["set", "probability"]).round(
    3
)

# %% [markdown]
# The smallest cover at a level: the fewest tables that hold every needed one with that probability. Certainty is
# paid for in tables.

# %%
levels = [0.5, 0.7, 0.8, 0.9, 0.95, 0.99]
covers = [linker.link(link.question, cover=level) for level in levels]
pd.DataFrame(
    {
        "level": levels,
        "tables": [len(found.tables) for found in covers],
        "holds all with": [found.cover_probability(found.tables) for found in covers],
        "cover": [", ".join(found.tables) for found in covers],
    }
).round(3)

# %% [markdown]
# The coupling of a database that no fit has seen is drawn afresh for every draw of the population. Its spread is the
# model's doubt about how far to trust this graph.

# %%
from bayeslink.model.hierarchy import Variant
from bayeslink.plots.curves import label_panel
from bayeslink.plots.style import ACCENT, INK, new_figure

posterior = linker.posteriors[Variant.HIERARCHICAL]
figure = new_figure(6.4, 2.8)
axes = figure.subplots()
bins = np.linspace(-2.0, 4.0, 41)
fresh = np.concatenate(
    [posterior.draws["beta"] + posterior.draws["sigma_beta"] * z for z in np.linspace(-2.2, 2.2, 45)]
)
weight = np.repeat(np.exp(-(np.linspace(-2.2, 2.2, 45) ** 2) / 2), posterior.num_draws)
axes.hist(fresh, bins, weights=weight, density=True, color=INK, alpha=0.35, label="a new database")
axes.hist(posterior.draws["beta"], bins, density=True, histtype="step", color=ACCENT, linewidth=1.6, label="their mean")
label_panel(axes, "Posterior of the coupling", "coupling (nats)", "density (per nat)", "upper right")
figure

# %% [markdown]
# A joint distribution answers conditional questions that separate probabilities cannot: if `customers` and `products`
# are both needed, how likely is `transactions`?

# %%
distribution, place = link.distribution, {name: t for t, name in enumerate(link.graph.table_names)}
inside = distribution.states > 0
both = inside[:, place["customers"]] & inside[:, place["products"]]
neither = ~inside[:, place["customers"]] & ~inside[:, place["products"]]
junction, mass = inside[:, place["transactions"]], distribution.probabilities[0]
pd.Series(
    {
        "P(transactions)": mass[junction].sum(),
        "given customers and products": mass[junction & both].sum() / mass[both].sum(),
        "given neither": mass[junction & neither].sum() / mass[neither].sum(),
    }
).round(3).to_frame("probability")

# %% [markdown]
# Finally doubt. For every question of the sample about this shop: the entropy of its distribution, whether the most
# probable set is the gold one, and whether the cover holds gold. Lexical evidence alone seldom finds the exact set;
# the cover is what to rely on.

# %%
from bayeslink import gold_tables

lines = (root / "data" / "sample" / "questions.jsonl").read_text().splitlines()
asked = [row for row in map(json.loads, lines) if row["db_id"] == "shop"]
found = [linker.link(row["question"]) for row in asked]
gold = [{link.graph.table_names[t] for t in gold_tables(row["query"], link.graph)} for row in asked]
doubt = pd.DataFrame(
    {
        "question": [row["question"] for row in asked],
        "entropy (nats)": [float(item.distribution.entropy[0]) for item in found],
        "mode is gold": [set(item.mode) == own for item, own in zip(found, gold, strict=True)],
        "gold in the 95 % cover": [own <= set(item.tables) for item, own in zip(found, gold, strict=True)],
    }
).sort_values("entropy (nats)")
doubt.style.background_gradient(cmap="Blues", subset="entropy (nats)").format(precision=2).hide(axis="index")

# %%
# With a limit on the risk that the most probable set is wrong, the answer may be to ask. Without one, only questions
# that tell no table from another, or need none with probability 0.7, are turned back; small talk can slip through.
trials = [(link.question, None), (link.question, 0.9), (link.question, 0.5)]
trials += [("What will the weather be like tomorrow?", limit) for limit in (None, 0.5)] + [("Zzz qqq", None)]
answers = [linker.link(question, max_risk=limit).abstention for question, limit in trials]
asks = [(*trial, bool(answer.abstained[0]), answer.reasons[0]) for trial, answer in zip(trials, answers, strict=True)]
pd.DataFrame(asks, columns=["question", "largest risk", "would ask", "because"])
