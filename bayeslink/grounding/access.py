"""What a principal may see, and whether SQL stays inside it: the entrance to access control.

`read_policy` says what a principal may read, `visible` makes the schema graph that holds nothing else, `check_sql`
refuses SQL that reads anything outside that graph. What is withheld leaves no trace: no key, edge, warning, type,
description or definition that names it stays. The graph is all that later steps are given, so that evidence, prompts
and messages cannot name what it does not hold.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bayeslink.grounding.ddl import quoted, quoted_table
from bayeslink.grounding.policy import Columns, Policy, Views, read_policy
from bayeslink.grounding.sql_check import Read, SqlCheck, check_sql, check_view
from bayeslink.schema.graph import RawKey, SchemaGraph, Table, build_graph, raw_key

__all__ = ["NOTICE", "Policy", "Read", "SqlCheck", "Views", "Visible", "check_sql", "read_policy", "visible"]

NOTICE = (
    "You see only the part of this database that you may read; if the question needs anything that is not shown, "
    "say that it cannot be answered, and do not answer from something similar."
)
"""What a prompt says of a partial view: the same sentence whatever is withheld."""

_PLAIN_TYPE = re.compile(r"[A-Za-z ]+(?:\([\d, ]*\))?[A-Za-z ]*")


@dataclass(frozen=True)
class Visible:
    """What a principal may see.

    Attributes:
        graph: The schema that may be read; a table of which columns are withheld is marked `partial`.
        notice: `NOTICE` where anything is withheld, else empty.
        owner_views: Whether views may be read whatever they read.
    """

    graph: SchemaGraph
    notice: str = ""
    owner_views: bool = False

    def check(self, sql: str, dialect: str | None = None, default_schema: str | None = None) -> SqlCheck:
        """`check_sql` with this graph and these views."""
        return check_sql(sql, self.graph, dialect, default_schema, self.owner_views)


def visible(graph: SchemaGraph, policy: Policy, default_schema: str | None = None) -> Visible:
    """The part of a schema that a principal may read.

    A view stays if it is granted and, unless the policy takes views as their owner does, its definition is known and
    passes `check_sql` on the rest. Of a primary key that lost a column nothing stays, since the others are no key.

    Args:
        graph: The whole schema.
        policy: Who may read what.
        default_schema: Schema of unqualified names in the definitions of views, as in `check_sql`.

    Raises:
        ValueError: If the policy names a table or column that the schema lacks, or that could be two.
    """
    owner = policy.views is Views.OWNER
    if policy.every_table:
        _granted(graph, policy)
        return Visible(graph, owner_views=owner)
    granted = _granted(graph, policy)
    shown = {place: _shown(graph.tables[place], columns) for place, columns in granted.items()}
    shown = {place: table for place, table in sorted(shown.items()) if table.columns}
    reads: dict[int, tuple[Read, ...]] = {}
    if not owner:
        whole = build_graph(graph.name, list(shown.values()), (), graph.dialect)
        passed = {place: check_view(table, whole, default_schema) for place, table in shown.items() if table.is_view}
        reads = {place: found for place, found in passed.items() if found is not None}
        shown = {place: table for place, table in shown.items() if not table.is_view or place in reads}
    if len(shown) == graph.num_tables and not any(table.partial for table in shown.values()):
        return Visible(graph, owner_views=owner)
    secrets = _Secrets(graph, shown)
    told = {place: secrets.without(table) for place, table in shown.items()}
    for place, found in reads.items():
        if told[place].definition is None:
            told[place] = replace(told[place], definition=_stand_in(found, graph))
    kept = build_graph(graph.name, list(told.values()), _keys(graph, told), graph.dialect)
    return Visible(kept, NOTICE, owner)


def _stand_in(reads: tuple[Read, ...], graph: SchemaGraph) -> str:
    """A definition that reads what a view reads, where the view's own also names what is withheld."""
    tables = {table.full_name: table for table in graph.tables}
    # Without aliases: any name of ours could be one that is withheld.
    parts = []
    for table, names in ((tables[read.table], read.columns) for read in reads):
        if not table.is_view:
            columns = ", ".join(quoted(name, graph.dialect) for name in names)
            parts.append(f"EXISTS (SELECT {columns or '1'} FROM {quoted_table(table, graph.dialect)})")
    return f"SELECT {', '.join(parts)}"


def _granted(graph: SchemaGraph, policy: Policy) -> dict[int, Columns]:
    """Columns granted of each table, by its position; those of all names that mean the table together."""
    found: dict[int, Columns] = {}
    for (schema, name), columns in policy.tables.items():
        place = _place(graph, f"{schema}.{name}" if schema else name, policy)
        if place is None:
            continue
        table = graph.tables[place]
        held = {column.name for column in table.columns}
        spelled: set[str] = set()
        for wanted in columns or ():
            hits = {own for own in held if own.casefold() == wanted.casefold()}
            hits = {wanted} if wanted in hits else hits
            if len(hits) != 1 and not (policy.from_database and not hits):
                how = "could be two" if hits else "does not exist"
                raise ValueError(
                    f"policy of {policy.principal!r}: column {wanted!r} of table {table.full_name!r} {how}; "
                    "name it as the database does"
                )
            spelled |= hits
        before = found.get(place, frozenset())
        found[place] = None if columns is None or before is None else before | spelled
    return found


def _place(graph: SchemaGraph, wanted: str, policy: Policy) -> int | None:
    hits = [place for place, table in enumerate(graph.tables) if table.full_name.casefold() == wanted]
    hits = hits or [place for place, table in enumerate(graph.tables) if table.name.casefold() == wanted]
    if len(hits) == 1:
        return hits[0]
    if not hits and policy.from_database:
        return None
    how = "could be two; write schema.name" if hits else "does not exist; name it as the database does"
    raise ValueError(f"policy of {policy.principal!r}: table {wanted!r} {how}")


def _shown(table: Table, columns: Columns) -> Table:
    """A table with the granted columns alone."""
    if columns is None or columns >= {column.name for column in table.columns}:
        return table
    kept = tuple(column for column in table.columns if column.name in columns)
    key = table.primary_key
    if not {name.casefold() for name in key} <= {column.name.casefold() for column in kept}:
        kept, key = tuple(replace(column, primary_key=False) for column in kept), ()
    return replace(table, columns=kept, key_columns=key if table.key_columns else (), partial=True)


def _keys(graph: SchemaGraph, shown: dict[int, Table]) -> Iterator[RawKey]:
    """The foreign keys of which nothing is withheld, in order."""
    columns = {place: {column.name for column in table.columns} for place, table in shown.items()}
    for key in graph.foreign_keys:
        if not {key.table, key.ref_table} <= shown.keys():
            continue
        if set(key.columns) <= columns[key.table] and set(key.ref_columns) <= columns[key.ref_table]:
            yield raw_key(key, shown[key.table], shown[key.ref_table])


class _Secrets:
    """Names of what is withheld, to be found in texts, however they are spelled: order_lines, OrderLines, order lines.

    A name that something visible has too is none.
    """

    def __init__(self, graph: SchemaGraph, shown: dict[int, Table]) -> None:
        open_names = {_joined(name) for table in shown.values() for name in _names(table)}
        self.names: set[str] = set()
        for place, table in enumerate(graph.tables):
            held = {column.name for column in shown[place].columns} if place in shown else set()
            withheld = [column for column in table.columns if column.name not in held]
            names = [name for column in withheld for name in (column.name, column.natural_name)]
            names += [] if place in shown else [table.name, table.natural_name]
            self.names |= {_joined(name) for name in names if name} - open_names - {""}
        self.longest = max((len(name) for name in self.names), default=0)
        # Some scripts put no space between words.
        self.inside = tuple(name for name in self.names if not name.isascii())

    def named_in(self, text: str) -> bool:
        """Whether a text names anything that is withheld."""
        words = _words(text)
        for start in range(len(words)):
            run = ""
            for word in words[start:]:
                run += word
                if len(run) > self.longest:
                    break
                if run in self.names:
                    return True
        return any(name in "".join(words) for name in self.inside)

    def without(self, table: Table) -> Table:
        """A table without the texts that name what is withheld."""
        columns = tuple(
            replace(
                column,
                type=column.type if _PLAIN_TYPE.fullmatch(column.type) else self.told(column.type) or "",
                natural_name=self.told(column.natural_name),
                description=self.told(column.description),
            )
            for column in table.columns
        )
        texts = {name: self.told(getattr(table, name)) for name in ("natural_name", "description", "definition")}
        return replace(table, columns=columns, **texts)

    def told(self, text: str | None) -> str | None:
        """The text, or None if it names anything that is withheld."""
        return None if text is None or self.named_in(text) else text


def _names(table: Table) -> Iterator[str]:
    yield table.name
    for column in table.columns:
        yield column.name


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def _joined(name: str) -> str:
    return "".join(_words(name))
