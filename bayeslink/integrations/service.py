"""What an agent asks of one database, as JSON values: which tables, why, what to ask the user, may this SQL run.

The catalogue is read again when it is older than `max_age`, so that a schema that changes between two calls is noticed.
What a policy withholds is gone before anything is computed, and no answer names it. Nothing is written.
"""

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from bayeslink.grounding.access import visible
from bayeslink.grounding.policy import Policy
from bayeslink.linker import Link, SchemaLinker
from bayeslink.schema.database import read_database
from bayeslink.schema.graph import SchemaGraph
from bayeslink.schema.linkable import linkable

__all__ = ["LinkService"]


@dataclass
class LinkService:
    """A linker of one live database that follows its schema.

    Attributes:
        url: SQLAlchemy URL, or the path of an SQLite file; opened read-only.
        policy: Who may read what; None for everything.
        channels: Kind of evidence; the most accurate that is installed by default.
        posterior: Posterior file; the shipped one by default.
        schemas: Database schemas to read, "*" for all.
        infer_keys: Guess keys where none are declared.
        max_age: Seconds after which the catalogue is read again.
    """

    url: str
    policy: Policy | None = None
    channels: str | None = None
    posterior: Path | None = None
    schemas: tuple[str, ...] | None = None
    infer_keys: bool = False
    max_age: float = 60.0
    _linker: SchemaLinker | None = field(default=None, init=False, repr=False)
    _read: SchemaGraph | None = field(default=None, init=False, repr=False)
    _read_at: float = field(default=0.0, init=False, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    def link_schema(self, question: str, evidence: str | None = None, cover: float = 0.95) -> dict:
        """The tables that a question needs, with probabilities, the cover's DDL and whether to ask first.

        Args:
            question: The question, in natural language.
            evidence: A hint that belongs to it.
            cover: Level of the smallest cover.

        Raises:
            ValueError: If the question, the level or the database cannot be used.
        """
        link = self._link(question, evidence, cover)
        document = link.to_dict()
        kept = ("question", "database", "posterior", "cover", "mode", "abstain", "reason", "warnings", "exact")
        found = {name: document[name] for name in kept}
        found["tables"] = [
            {name: row[name] for name in ("table", "probability", "in_cover", "in_mode")}
            for row in document["tables"]
            if row["in_cover"] or row["in_mode"] or row["probability"] >= 0.05
        ]
        return found | {"ddl": link.ddl().text, "partial_view": self.policy is not None and not self.policy.every_table}

    def explain(self, question: str, table: str, evidence: str | None = None) -> dict:
        """Why a table is thought needed or not: what each channel and the neighbours add, in log-odds.

        Raises:
            ValueError: If the schema has no such table, or as in `link_schema`.
        """
        link = self._link(question, evidence)
        place = link.position(table, "table")
        row = next(r for r in link.to_frame().to_dict(orient="records") if r["table"] == link.graph.table_names[place])
        alone = row["independent_probability"]
        return {
            "table": row["table"],
            "probability": row["probability"],
            "independent_probability": None if alone != alone else alone,
            "channels": {name: row[name] for name in link.channels},
            "from_neighbours": row["from_neighbours"],
            "why": row["why"],
            "in_cover": row["in_cover"],
            "in_mode": row["in_mode"],
        }

    def ask(self, question: str, evidence: str | None = None, max_risk: float | None = None) -> dict:
        """Whether to ask the user before answering, and the one question that would help most.

        Args:
            question: The question, in natural language.
            evidence: A hint that belongs to it.
            max_risk: Ask when the most probable set is wrong with a larger probability.

        Raises:
            ValueError: If `max_risk` is no probability, or as in `link_schema`.
        """
        link = self._link(question, evidence, max_risk=max_risk)
        found = link.clarify()
        sets = {
            word: sorted(link.answer({found.table: needed}).mode)
            for word, needed in (("if_yes", True), ("if_no", False))
        }
        return {
            "ask_first": bool(link.abstention.abstained[0]),
            "reason": link.abstention.reasons[0] or None,
            "question": f"Does this need {found.table}?",
            "table": found.table,
            "probability": found.probability,
            "gain_nats": found.gain_nats,
            "right_before": found.exact_before,
            "right_after": found.exact_after,
        } | sets

    def check_sql(self, sql: str) -> dict:
        """Whether a query reads only what may be read; one that cannot be told is refused.

        Args:
            sql: One query, in the database's dialect.
        """
        with self._lock:
            self._follow()
            assert self._read is not None
            seen = visible(self._read, self.policy or Policy("everyone", every_table=True))
        found = seen.check(sql, self._read.dialect)
        return {"allowed": found.allowed, "reason": found.reason or None}

    def _link(self, question: str, evidence: str | None, cover: float = 0.95, max_risk: float | None = None) -> Link:
        with self._lock:
            return self._follow().link(question, evidence, cover, max_risk)

    def _follow(self) -> SchemaLinker:
        """The linker of the schema as it is now."""
        now = time.monotonic()
        if self._linker is not None and now - self._read_at < self.max_age:
            return self._linker
        read = read_database(self.url, schemas=self.schemas)
        if self._linker is None or read != self._read:
            graph = read if self.policy is None else visible(read, self.policy).graph
            graph = linkable(graph, infer_keys=self.infer_keys)
            self._linker = SchemaLinker.from_graph(graph, posterior=self.posterior, channels=self.channels)
        self._read, self._read_at = read, now
        return self._linker
