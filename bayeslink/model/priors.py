"""Prior scales of the hierarchical model (MODEL.md section 3), each an argument.

alpha ~ N(0, 2^2)   gamma_k ~ N(0, 1)   beta ~ N(0, 1)   sigma_alpha, sigma_beta ~ HalfNormal(1)
"""

from dataclasses import dataclass, fields, replace

import numpyro.distributions as dist

__all__ = ["Priors"]


@dataclass(frozen=True)
class Priors:
    """Scales of the priors, all in log-odds (nats for couplings).

    Attributes:
        intercept_scale: sd of alpha; 2 lets the share of relevant tables lie anywhere from 2 % to 98 %.
        slope_scale: sd of each gamma_k, per standard deviation of a channel.
        coupling_scale: sd of beta; couplings of 1 already double or triple the odds of a neighbour.
        intercept_sd_scale: HalfNormal scale of sigma_alpha, the spread of intercepts over databases.
        coupling_sd_scale: HalfNormal scale of sigma_beta, the spread of couplings over databases.
        own_scale: sd of each database's own intercept and coupling in the `unpooled` variant.
    """

    intercept_scale: float = 2.0
    slope_scale: float = 1.0
    coupling_scale: float = 1.0
    intercept_sd_scale: float = 1.0
    coupling_sd_scale: float = 1.0
    own_scale: float = 5.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ValueError(f"{field.name}={value}: a prior scale must be positive")

    def scaled(self, factor: float) -> "Priors":
        """Every scale times `factor`, for the prior sensitivity analysis (1/2, 1, 2, 4)."""
        return replace(self, **{field.name: factor * getattr(self, field.name) for field in fields(self)})

    def distribution(self, site: str) -> dist.Distribution:
        """Prior of a named population parameter: alpha, gamma, beta, sigma_alpha or sigma_beta."""
        return {
            "alpha": dist.Normal(0.0, self.intercept_scale),
            "gamma": dist.Normal(0.0, self.slope_scale),
            "beta": dist.Normal(0.0, self.coupling_scale),
            "sigma_alpha": dist.HalfNormal(self.intercept_sd_scale),
            "sigma_beta": dist.HalfNormal(self.coupling_sd_scale),
        }[site]
