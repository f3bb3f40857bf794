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
# # Your own graph
#
# Nothing in the model knows what a table is. Here the nodes are passages of documents, joined where one passage refers
# to another, and a question needs the few passages that answer it together, as in retrieval over a graph. The scores
# come from you: any numbers that say how well a passage matches.
#
# The documents are made up. A question starts at one passage and follows references for up to two steps, so selections
# are *not* drawn from the model. The first passage matches the question well, those that it leads to much less.

# %%
# %matplotlib inline
import networkx as nx
import numpy as np
import pandas as pd
from sklearn.base import clone

from bayeslink import SubgraphModel

NUM_DOCUMENTS, NUM_PASSAGES, NUM_QUESTIONS = 16, 8, 30
rng = np.random.default_rng(4)


def document(number):
    """References between the passages of one document: a tree, and two more."""
    graph = nx.random_labeled_tree(NUM_PASSAGES, seed=number)
    graph.add_edges_from(tuple(rng.choice(NUM_PASSAGES, 2, replace=False).tolist()) for _ in range(2))
    return sorted(graph.edges)


def ask(edges):
    """Passages that a question needs, and two scores of every passage: words in common, and likeness of meaning."""
    near = nx.Graph(edges)
    walk = [int(rng.integers(NUM_PASSAGES))]
    for _ in range(rng.integers(3)):
        walk.append(int(rng.choice(sorted(near[walk[-1]]))))
    signal = np.zeros(NUM_PASSAGES)
    signal[walk], signal[walk[0]] = 0.8, 2.5
    words = rng.poisson(0.4 + signal).astype(float)
    return np.isin(np.arange(NUM_PASSAGES), walk).astype(int), np.stack(
        [words, signal + rng.normal(size=NUM_PASSAGES)], axis=1
    )


names = [f"document {number}" for number in range(NUM_DOCUMENTS)]
edges = {name: document(number) for number, name in enumerate(names)}
groups = np.repeat(names, NUM_QUESTIONS)
y, X = (np.stack(part) for part in zip(*(ask(edges[name]) for name in groups), strict=True))
pd.DataFrame({"axes": ["questions, nodes, channels", "questions, nodes"], "shape": [X.shape, y.shape]}, ["X", "y"])

# %% [markdown]
# Twelve documents are fitted on, four are kept away from every fit. `groups` names the document of each question:
# documents have an intercept and a coupling of their own, and a new one is expected to lie within their spread. A
# question always needs some passage, so the empty set is ruled out.

# %%
new = np.isin(groups, names[12:])
model = SubgraphModel(edges, support="non-empty").fit(X[~new], y[~new], groups[~new])
pd.DataFrame(
    {
        "words": model.posterior_.draws["gamma"][:, 0],
        "meaning": model.posterior_.draws["gamma"][:, 1],
        "coupling": model.posterior_.draws["beta"],
        "its spread over documents": model.posterior_.draws["sigma_beta"],
    }
).describe().loc[["mean", "std"]].round(2)

# %% [markdown]
# Against what? The same fit without the graph. On the new documents: how probable the needed set was (the joint log
# score, nats a question), how often the most probable set is exactly right, and the cover at 0.9.

# %%
plain = clone(model).set_params(variant="independent_hierarchical").fit(X[~new], y[~new], groups[~new])
fits = {"with the graph": model, "without": plain}
held = X[new], groups[new]


def scores(fit):
    """What a fit reaches on the new documents."""
    cover = fit.cover(*held, level=0.9)
    return {
        "joint log score": fit.log_score(X[new], y[new], groups[new]).mean(),
        "exactly right": fit.score(X[new], y[new], groups[new]),
        "cover holds all": (y[new] <= cover).all(axis=1).mean(),
        "passages in the cover": cover.sum(axis=1).mean(),
    }


pd.DataFrame({name: scores(fit) for name, fit in fits.items()}).T.round(3)

# %% [markdown]
# By how much, and how sure is that? The gain of each new document is a mean over its questions; four documents are few,
# and their differences say more than an average would.

# %%
gain = pd.Series(
    model.log_score(X[new], y[new], groups[new]) - plain.log_score(X[new], y[new], groups[new]), groups[new]
)
by_document = gain.groupby(level=0).agg(["mean", "sem"])
by_document.columns = ["gain of the graph, nats a question", "standard error"]
by_document.round(3)

# %%
from bayeslink.plots.graphs import draw_schema_graph
from bayeslink.plots.style import new_figure

place = int(np.flatnonzero(new)[y[new].sum(axis=1).argmax()])
one = X[place][None], [groups[place]]
figure = new_figure(8.0, 4.5)
draw_schema_graph(
    figure.subplots(),
    [f"passage {node}{' (needed)' if y[place, node] else ''}" for node in range(NUM_PASSAGES)],
    model.predict_proba(*one)[0],
    np.array(edges[groups[place]]),
    model.cover(*one, level=0.9)[0] > 0,
    "A question to a new document that needs three passages",
)
figure

# %% [markdown]
# For one question there is a whole distribution, the same object that `SchemaLinker` returns: sets with probabilities,
# covers, entropy, conditioning on an answer.

# %%
distribution = model.distribution(*one)[0]
sets, probability = distribution.top(5)
pd.DataFrame(
    {"passages": [np.flatnonzero(chosen).tolist() for chosen in sets[0]], "probability": probability[0]}
).round(3)

# %% [markdown]
# What to bring: `X` with a row of scores for each node, `y` with 0 and 1, a name of the graph for each question. Graphs
# may differ in size (a list of arrays in place of one), each question may have its own (`edges` with a list for each),
# and `variant`, `forms`, `priors` and `method` are the package's.
