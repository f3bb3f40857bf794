"""What follows: exact selections given parameters, and approximate parameters given data.

float64 only: importing this package switches JAX to 64-bit arithmetic.
"""

import jax

jax.config.update("jax_enable_x64", True)
