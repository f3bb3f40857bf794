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
# # From a database to a posterior
#
# A live database, a question and its SQL, step by step: the schema graph from the catalogue, the gold tables from the
# SQL, the evidence for each table, and the posterior over sets of tables. The database is the `shop` of `data/sample`,
# which we wrote ourselves; numbers on it say nothing about benchmarks.

# %%
import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd

from bayeslink import read_database

root = next(folder for folder in (Path.cwd(), *Path.cwd().parents) if (folder / "data" / "sample").is_dir())
path = Path(tempfile.mkdtemp()) / "shop.sqlite"
with closing(sqlite3.connect(path)) as connection:
    connection.executescript((root / "data" / "sample" / "databases" / "shop.sql").read_text())
graph = read_database(str(path))
names = graph.table_names
joined = {name: [] for name in names}
for edge in graph.edges:
    joined[names[edge.first]].append(names[edge.second])
    joined[names[edge.second]].append(names[edge.first])
pd.DataFrame({"columns": [len(t.columns) for t in graph.tables], "joined to": map(", ".join, joined.values())}, names)

# %% [markdown]
# One edge for each pair of tables that a declared foreign key joins; `categories` references itself, which adds none.
# The gold tables of a question are the physical tables that its SQL reads, found by scope in the syntax tree.

# %%
from bayeslink import gold_tables

lines = (root / "data" / "sample" / "questions.jsonl").read_text().splitlines()
asked = [row for row in map(json.loads, lines) if row["db_id"] == "shop"]
gold = np.zeros((len(asked), graph.num_tables), dtype=bool)
for place, row in enumerate(asked):
    gold[place, list(gold_tables(row["query"], graph))] = True
pd.DataFrame(
    {
        "question": [row["question"] for row in asked],
        "gold": [", ".join(names[t] for t in np.flatnonzero(own)) for own in gold],
    }
).head(8).style.set_properties(**{"text-align": "left"})

# %% [markdown]
# Names can mislead: a common table expression may hide a table of its name, and a query that does not resolve is
# counted with its reason, never dropped in silence.

# %%
from bayeslink.schema.gold import UnresolvedQueryError

queries = {
    "a CTE with a table's name": "WITH stores AS (SELECT * FROM customers) SELECT * FROM stores",
    "a subquery": "SELECT name FROM products WHERE id IN (SELECT product_id FROM transactions)",
    "a table that is not there": "SELECT * FROM invoices",
    "not SQL": "SELECT FROM WHERE",
}


def read(query):
    """Gold tables of a query, or why it has none."""
    try:
        return ", ".join(sorted(names[t] for t in gold_tables(query, graph)))
    except UnresolvedQueryError as reason:
        return f"unresolved: {str(reason).splitlines()[0][:70]}"


pd.Series({what: read(query) for what, query in queries.items()}, name="gold tables").to_frame()

# %% [markdown]
# Evidence: one number for each (question, table) pair and channel. Token overlap and BM25 compare words, the third
# compares character n-grams. Below, the first question; gold tables are marked.

# %%
from bayeslink import compute_evidence
from bayeslink.inference.posterior import load_posteriors, shipped_path
from bayeslink.linker import channels_named
from bayeslink.model.hierarchy import Variant

posteriors = load_posteriors(shipped_path("lexical"))
posterior = posteriors[Variant.HIERARCHICAL]
questions = [row["question"] for row in asked]
evidence = compute_evidence(graph, questions, channels_named(posterior.channels), gold=gold, group=np.arange(len(gold)))
frame = pd.DataFrame(evidence.values[0], names, evidence.channels).assign(gold=gold[0])
frame.style.set_caption(questions[0]).background_gradient(cmap="Blues", subset=list(evidence.channels)).format(
    precision=2
)

# %% [markdown]
# *Regulars* and *espresso machine* name no table, so the evidence is thin, as it often is. The shipped posterior was
# fitted on Spider and BIRD training questions and has never seen this database. It turns evidence and graph into a
# distribution over the 512 sets of tables.

# %%
from bayeslink import predict

ready = posterior.standardisation.apply(evidence)
distribution, log_score = predict(ready, posterior.draws_for(ready), posterior.support)
alone = posteriors[Variant.INDEPENDENT]
plain = alone.standardisation.apply(evidence)
independent, independent_score = predict(plain, alone.draws_for(plain), alone.support)
weak = gold & (independent.marginals < 0.5)
pd.DataFrame(
    {
        "log probability of gold (nats)": [independent_score.mean(), log_score.mean()],
        "gold tables above 1/2": [(p.marginals > 0.5)[gold].mean() for p in (independent, distribution)],
        "other tables above 1/2": [(p.marginals > 0.5)[~gold].mean() for p in (independent, distribution)],
    },
    ["independent", "with coupling"],
).round(3)

# %% [markdown]
# Labelled questions of the database itself say more than any other database can. An update with twelve of them gives
# the database its own intercept and coupling; the last row scores the six others, too few to judge by.

# %%
first, rest = np.arange(12), np.arange(12, len(asked))
updated = posterior.update(evidence.select_questions(first))
later = ready.select_questions(rest)
draws = {"a new database": posterior.draws_for(later), "after 12 questions": updated.draws_for(later)}
pd.DataFrame(
    {
        when: {
            "intercept, mean": own.intercept.mean(),
            "intercept, sd": own.intercept.std(),
            "coupling, mean": own.coupling.mean(),
            "coupling, sd": own.coupling.std(),
            "log probability of gold, six others": predict(later, own, posterior.support)[1].mean(),
        }
        for when, own in draws.items()
    }
).round(2)

# %% [markdown]
# All of this is behind one object. `SchemaLinker.from_database(path).link(question)` does the steps above; the next
# notebook reads what it returns.
