"""Which databases an adapter was trained on: their hashed fingerprints lie beside its weights.

A fit or an evaluation must not take an adapter's scores on its own training databases, or on their twins, for those of
new ones. What was trained elsewhere and does not say on what is said aloud by whoever asks.
"""

from collections.abc import Mapping
from pathlib import Path

from jaxtyping import UInt64
from numpy import ndarray

from bayeslink.evidence.attention import AttentionHead
from bayeslink.evidence.store import DatabaseKey, read_fingerprints, save_fingerprints

__all__ = ["adapter_databases", "save_adapter_databases"]

FILE = "databases.npz"
"""Name of the file in the adapter's folder."""


def adapter_databases(head: AttentionHead) -> dict[DatabaseKey, UInt64[ndarray, "_"]] | None:
    """Hashed fingerprints of the databases that a head's adapter was trained on.

    Returns:
        None where the adapter does not say; empty for a head without an adapter, which was trained on none of ours.

    Raises:
        ValueError: If the file is broken.
    """
    if not head.adapter:
        return {}
    path = Path(head.adapter) / FILE
    return read_fingerprints(path) if path.is_file() else None


def save_adapter_databases(adapter: Path, databases: Mapping[DatabaseKey, UInt64[ndarray, "_"]]) -> None:
    """Write what an adapter was trained on into its folder."""
    save_fingerprints(adapter / FILE, databases)
