"""The command `data`: the stored evidence sets."""

import json

from bayeslink.cli.common import print_json
from bayeslink.cli.options import Json

__all__ = ["data"]


def data(as_json: Json = False) -> None:
    """The stored evidence sets and the folder of the benchmark texts."""
    from bayeslink.evidence.store import evidence_home
    from bayeslink.schema.corpus import data_home

    manifest = json.loads((evidence_home() / "manifest.json").read_text())["sets"]
    try:
        home = str(data_home())
    except ValueError as error:
        home = f"none ({error})"
    if as_json:
        print_json({"sets": manifest, "data_home": home})
        return
    print(f"{'set':<22}{'questions':>10}{'unresolved':>12}{'databases':>11}")
    for name, entry in manifest.items():
        print(f"{name:<22}{entry['n_questions']:>10}{entry['n_unresolved']:>12}{entry['n_databases']:>11}")
    print(f"texts: {home}")
