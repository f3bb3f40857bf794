"""Prior scales of the hierarchical model (MODEL.md section 3), each an argument.

alpha ~ N(0, 2^2)   gamma_k ~ N(0, 1)   beta ~ N(0, 1)   sigma_alpha, sigma_beta ~ HalfNormal(1)

Beyond the paper: kappa_c ~ N(0, 1) for each covariate of the intercept, lambda_c ~ N(0, 0.5^2) for each
covariate of the coupling, delta_b ~ N(0, 0.5^2) for each further kind of edge, sigma_scale ~ HalfNormal(0.5)
for the spread of the evidence's weight, rho ~ LKJ(2) for the correlation of intercept and coupling.
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
        context_scale: sd of each kappa_c, per standard deviation of a covariate of the intercept.
        coupling_slope_scale: sd of each lambda_c and delta_b; half the scale of the coupling itself.
        scale_sd_scale: HalfNormal scale of sigma_scale, the relative spread of the evidence's weight.
        correlation_concentration: Concentration of the LKJ prior of rho; 2 doubts correlations near 1. Not a
            scale: `scaled` leaves it.
    """

    intercept_scale: float = 2.0
    slope_scale: float = 1.0
    coupling_scale: float = 1.0
    intercept_sd_scale: float = 1.0
    coupling_sd_scale: float = 1.0
    own_scale: float = 5.0
    context_scale: float = 1.0
    coupling_slope_scale: float = 0.5
    scale_sd_scale: float = 0.5
    correlation_concentration: float = 2.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ValueError(f"{field.name}={value}: a prior scale must be positive")

    def scaled(self, factor: float) -> "Priors":
        """Every scale times `factor`, for the prior sensitivity analysis (1/2, 1, 2, 4)."""
        names = [field.name for field in fields(self) if field.name != "correlation_concentration"]
        return replace(self, **{name: factor * getattr(self, name) for name in names})

    def distribution(self, site: str) -> dist.Distribution:
        """Prior of a named population parameter, one entry where the parameter is a vector."""
        concentration = self.correlation_concentration
        return {
            "alpha": dist.Normal(0.0, self.intercept_scale),
            "kappa": dist.Normal(0.0, self.context_scale),
            "gamma": dist.Normal(0.0, self.slope_scale),
            "beta": dist.Normal(0.0, self.coupling_scale),
            "lambda": dist.Normal(0.0, self.coupling_slope_scale),
            "delta": dist.Normal(0.0, self.coupling_slope_scale),
            "sigma_alpha": dist.HalfNormal(self.intercept_sd_scale),
            "sigma_beta": dist.HalfNormal(self.coupling_sd_scale),
            "sigma_scale": dist.HalfNormal(self.scale_sd_scale),
            # LKJ of two effects: (rho + 1) / 2 ~ Beta(concentration, concentration). Without the domain NumPyro
            # would let rho leave (-1, 1).
            "rho": dist.TransformedDistribution(
                dist.Beta(concentration, concentration),
                dist.transforms.AffineTransform(-1.0, 2.0, domain=dist.constraints.unit_interval),
            ),
        }[site]
