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
# # The worked example
#
# *Which customers bought which products?* names two tables. The query also needs the junction `transactions`, which
# matches the question only weakly: taken on its own it would have probability 0.24. This notebook follows the paper's
# Figure 1 from four numbers to the exact distribution over all 16 sets of tables.

# %%
# %matplotlib inline
import jax.numpy as jnp
import numpy as np
import pandas as pd
from scipy.special import expit, logit

from bayeslink.inference import enumeration

names = ["customers", "transactions", "products", "categories"]
edges = np.array([[0, 1], [1, 2], [2, 3]])  # one edge for each joined pair of tables
unary = np.array([2.0, logit(0.24), 2.0, -1.0])  # log-odds of each table on its own evidence
needed = np.array([True, True, True, False])
pd.DataFrame({"log-odds": unary, "probability on its own": expit(unary), "needed": needed}, names).round(2)

# %% [markdown]
# The model gives a set of tables the score "sum of its log-odds, plus the coupling for every joined pair inside it",
# and a probability proportional to the exponential of its score. With four tables there are 16 sets, so nothing has to
# be approximated.

# %%
plan = enumeration.plan(edges, len(names))


def probabilities(coupling):
    """Probability of each of the 16 sets."""
    return np.exp(np.asarray(enumeration.log_probabilities(jnp.asarray(unary), plan, coupling)))


def name_of(state):
    """Names of the tables of a set."""
    return ", ".join(name for name, inside in zip(names, state, strict=True) if inside) or "no table"


sets = pd.DataFrame({f"coupling {b:g}": probabilities(b) for b in (0.0, 0.8, 1.5)}, map(name_of, plan.states))
sets.sort_values("coupling 0.8", ascending=False).head(6).round(3)

# %% [markdown]
# At 0 the best set leaves the junction out, at 0.8 it is the needed one, at 1.5 the distractor has come in. Proposition
# 1 says for which couplings no single table should be added or removed: above `-a / k` for every needed table with
# `k` needed neighbours, below it for every other table.

# %%
from bayeslink.theory.stability import flip_gains, stability_window

window = stability_window(unary, edges, needed)
gains = pd.DataFrame({f"coupling {b:g}": flip_gains(unary, edges, needed, b) for b in (0.4, 0.8, 1.2)}, names)
gains.round(2).style.highlight_between(left=0, color="#f2b8ae").format("{:.2f}").set_caption(
    f"Score gained by flipping one table of the needed set (nats); none gains between {window.lower:.2f} and "
    f"{window.upper:.2f}"
)

# %%
from bayeslink.plots.curves import draw_lines, label_panel, shade_window
from bayeslink.plots.style import new_figure

couplings = np.linspace(0.0, 1.5, 61)
table = pd.DataFrame([probabilities(b) @ plan.states for b in couplings], columns=names).assign(coupling=couplings)
figure = new_figure(6.4, 3.2)
axes = figure.subplots()
shade_window(axes, float(window.lower), float(window.upper), "window")
draw_lines(axes, table, "coupling", {name: name for name in names})
axes.axhline(0.5, color="0.5", linewidth=0.8)
label_panel(axes, "Exact probability of each table", "coupling (nats)", "probability", None)
axes.set_ylim(0.0, 1.05)
axes.legend(loc="lower right", fontsize=8, frameon=False)
figure

# %% [markdown]
# The same as a picture of the schema, without coupling and in the middle of the window.

# %%
from bayeslink.plots.graphs import draw_schema_graph

middle = float(window.lower + window.upper) / 2
figure = new_figure(9.5, 3.6)
for part, coupling in zip(figure.subfigures(2, 1), (0.0, middle), strict=True):
    found = probabilities(coupling)
    best = plan.states[found.argmax()] > 0
    draw_schema_graph(part.subplots(), names, found @ plan.states, edges, best, f"coupling {coupling:.2f}")
    part.axes[0].get_legend().remove()
figure

# %% [markdown]
# The coupling has a price. At fixed log-odds it raises *every* probability, so the expected number of tables grows
# with slope Cov(N, M) (Proposition 3), and an intercept that falls just fast enough takes it back.

# %%
from bayeslink.theory.shift import compensating_intercept, size_moments

grid = np.linspace(0.0, 1.5, 7)
solver = enumeration.log_partition
held = [size_moments(jnp.asarray(unary), plan, b, solver) for b in grid]
path = compensating_intercept(jnp.asarray(unary)[None, :], plan, grid, float(held[0].mean), solver)
moved = [size_moments(jnp.asarray(unary + a), plan, b, solver) for a, b in zip(path.intercept, grid, strict=True)]
pd.DataFrame(
    {
        "coupling": grid,
        "E[N], log-odds held": [float(found.mean) for found in held],
        "its slope Cov(N, M)": [float(found.covariance) for found in held],
        "intercept moved by": path.intercept,
        "E[N] then": [float(found.mean) for found in moved],
    }
).round(3)

# %% [markdown]
# So a coupling that is simply switched on makes the probabilities too large, and a fit that estimates coupling and
# intercept together does not. Change `unary` or `edges` above and run the cells again.
