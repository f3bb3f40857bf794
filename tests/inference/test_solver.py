"""The dispatcher picks by size, records what it picked, and every choice gives the same value."""

import jax.numpy as jnp
import numpy as np
import pytest

from bayeslink.inference.solver import METHODS, log_partition, solver


def path(num_tables: int) -> np.ndarray:
    return np.array([(t, t + 1) for t in range(num_tables - 1)], dtype=int).reshape(-1, 2)


@pytest.mark.parametrize(("num_tables", "method"), [(1, "enumeration"), (6, "enumeration"), (7, "elimination")])
def test_auto_picks_by_size_and_says_so(num_tables: int, method: str):
    unary = jnp.array(np.random.default_rng(num_tables).normal(size=num_tables))
    found = {name: log_partition(unary, path(num_tables), 0.8, name) for name in METHODS}
    assert found["auto"].method == method
    assert found["auto"].exact
    assert [found[name].method for name in METHODS[1:]] == list(METHODS[1:])
    assert float(found["enumeration"].value) == pytest.approx(float(found["elimination"].value), rel=1e-10)
    assert found["auto"].value == found[method].value


def test_what_no_method_can_do_is_refused():
    complete = np.array([(s, t) for s in range(16) for t in range(s)])
    with pytest.raises(ValueError, match=r"method='magic': use one of auto, enumeration, elimination"):
        solver(complete, 16, "magic")
    with pytest.raises(ValueError, match="too many subsets to list; use elimination"):
        solver(complete, 16, "enumeration")
    with pytest.raises(ValueError, match=r"max_width=10: .* needs separators of 15; raise max_width"):
        solver(complete, 16, max_width=10)
