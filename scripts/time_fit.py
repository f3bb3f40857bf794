"""Seconds of a marginal Laplace fit on all of Spider train + BIRD train, with and without compilation.

    python scripts/time_fit.py [VARIANT]

Every database is in, twins and the largest too; the paper's three channels and no covariates. The second fit of the
process starts from nothing again and finds everything compiled.
"""

import sys
import time

from bayeslink.evaluation.questions import stored_questions
from bayeslink.evidence.channel import Standardisation
from bayeslink.inference.fit import fit_packed
from bayeslink.inference.packing import pack
from bayeslink.model.hierarchy import Variant
from bayeslink.model.priors import Priors

CHANNELS = ("token_overlap", "bm25", "embedding_cosine")


def main(variant: str = "hierarchical") -> None:
    """Print both times."""
    questions = stored_questions(["spider-train", "bird-train"], CHANNELS)
    standardisation = Standardisation.fit(questions.evidences)
    batch = pack([standardisation.apply(item) for item in questions.evidences])
    keys = tuple(item.key for item in questions.evidences)
    print(f"{batch.num_questions} questions of {batch.num_databases} databases, variant {variant}")
    for label in ("with compilation", "compiled"):
        began = time.perf_counter()
        fit_packed(batch, keys, standardisation, Variant(variant), Priors(), effects=False)
        print(f"{label:17} {time.perf_counter() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
