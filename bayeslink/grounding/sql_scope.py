"""What the names in a query stand for, told only where every database would say the same.

A database resolves names among all that it holds; a check that must not know what is withheld sees a part of it. So a
name counts as resolved only if nothing withheld could take its place. The dangerous places are those where a database
looks for a column before it looks further: in the sources of an inner query before those around it, and among columns
before the aliases of the SELECT. There a name is refused as soon as a table whose columns are partly withheld comes
first, whatever the withheld columns are called: the answer is a function of what may be seen, and tells nothing more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from bayeslink.schema.graph import SchemaGraph, Table

__all__ = [
    "Level",
    "RefusedQueryError",
    "Source",
    "find_column",
    "find_source",
    "find_table",
    "folded",
    "same_spelling",
    "table_source",
    "written",
]

_FOLDS_DOWN = frozenset({"postgres", "redshift", "materialize", "risingwave", ""})
"""Dialects, the generic one among them, that read unquoted names in lower case and quoted ones as they stand."""
_FOLDS_UP = frozenset({"oracle", "snowflake", "db2"})
"""Dialects that read unquoted names in upper case; SQLAlchemy states such names in lower case."""
_EXACT_TABLES = frozenset({"mysql", "bigquery", "clickhouse", "hive"})
"""Dialects in which tables, unlike columns, may differ in case alone."""
_DOTTED = frozenset({"bigquery", "snowflake", "databricks"})
"""Dialects of which catalogues state project.dataset as one name."""
_DEFAULT_SCHEMA = {"sqlite": "main"}


class RefusedQueryError(ValueError):
    """A query may not run; the message is the reason and quotes nothing but the query."""


@dataclass(frozen=True, eq=False)
class Source:
    """What stands in FROM: a table, or what a query or a function returns.

    Attributes:
        alias: The name that it goes by, folded.
        names: Folded names of its columns in order; None for one whose name depends on the database.
        table: The table; None for what a query or a function returns.
        schema: Folded schema of a table that goes by its own name; None under an alias.
        certain: Whether every database gives the columns these names.
        spelling: The name of a common table expression as it stands where it is defined.
    """

    alias: str
    names: tuple[str | None, ...]
    table: Table | None = None
    schema: str | None = None
    certain: bool = True
    spelling: str = ""

    @property
    def partial(self) -> bool:
        """Whether it may have columns that cannot be seen."""
        return self.table is not None and self.table.partial


@dataclass
class Level:
    """The sources of one SELECT, so far as one of its clauses sees them.

    Attributes:
        sources: In the order of FROM.
        merged: Names that USING or NATURAL make one column of several sources.
        aliases: Names that the SELECT gives to its results.
    """

    sources: list[Source] = field(default_factory=list)
    merged: set[str] = field(default_factory=set)
    aliases: set[str] = field(default_factory=set)


def folded(name: exp.Expression, dialect: str) -> str:
    """An identifier as the dialect compares it.

    Raises:
        RefusedQueryError: If it is no identifier.
    """
    if not isinstance(name, exp.Identifier):
        raise RefusedQueryError(f"{written(name)} is no name")
    if dialect in _FOLDS_DOWN or dialect in _FOLDS_UP:
        change = str.lower if dialect in _FOLDS_DOWN else str.upper
        return name.name if name.quoted else change(name.name)
    return _lower(name.name, dialect)


def identifiers(name: exp.Expression) -> list[exp.Expression]:
    """Parts of a dotted name, the outermost first."""
    parts = (name.args.get(place) for place in ("catalog", "db", "table", "this"))
    return [part for part in parts if isinstance(part, exp.Expression)]


def find_table(parts: Sequence[exp.Expression], graph: SchemaGraph, dialect: str, default: str | None) -> Table:
    """The table that a dotted name means.

    Args:
        parts: The name's identifiers, the table's last.
        graph: What may be seen.
        dialect: sqlglot dialect.
        default: Schema of unqualified names; None where only tables without a schema have them.

    Raises:
        RefusedQueryError: If no table, or more than one, has that name.
    """
    own = [_table_name(part, dialect) for part in parts]
    name, schema = own[-1], ".".join(own[:-1])
    default = default or _DEFAULT_SCHEMA.get(dialect)
    places = {"", _catalogued(default, dialect)} if default else {""}
    found = []
    for table in graph.tables:
        place = _catalogued(table.schema or "", dialect)
        # An unqualified name must not mean a table of a schema in which the database looks later, or never.
        fits = place in places if not schema else place == schema or (place in places and schema in places)
        dotted = dialect in _DOTTED and ".".join(own) == _catalogued(table.full_name, dialect)
        if dotted or (fits and _catalogued(table.name, dialect) == name):
            found.append(table)
    if len(found) != 1:
        shown = ".".join(part.name for part in parts)
        raise RefusedQueryError(f"table {shown!r} could be two" if found else f"there is no table {shown!r}")
    return found[0]


def same_spelling(name: str, other: str, dialect: str) -> bool:
    """Whether a database that keeps tables of other case apart takes the two for one."""
    return dialect not in _EXACT_TABLES or name == other


def table_source(table: Table, alias: str | None, names: Sequence[str], dialect: str) -> Source:
    """A table in FROM, under its alias and with new names for its first columns, if any are given."""
    own = tuple(_lower_column(column.name, dialect) for column in table.columns)
    if names and (table.partial or len(names) > len(own)):
        raise RefusedQueryError("columns cannot be renamed by their order: not all of them may be known")
    schema = None if alias else _catalogued(table.schema or "", dialect)
    called = alias or _lower_column(table.name, dialect)
    return Source(called, (*names, *own[len(names) :]), table, schema)


def find_source(qualifier: Sequence[str], levels: Sequence[Level]) -> Source | None:
    """The source that a folded qualifier names, in the innermost level that has it; None if none has.

    Raises:
        RefusedQueryError: If two sources of a level have that name.
    """
    *schema, alias = qualifier
    for level in levels:
        named = [source for source in level.sources if source.alias == alias]
        if schema:
            named = [source for source in named if source.schema in (".".join(schema), "")]
        if len(named) > 1:
            raise RefusedQueryError(f"{alias!r} could be two tables")
        if named:
            return named[0]
    return None


def find_column(name: str, levels: Sequence[Level], shown: str) -> list[tuple[Source, int]]:
    """(source, position) of each column that an unqualified folded name means; none if it is an alias.

    Several where USING or NATURAL has made them one.

    Args:
        name: The name, folded.
        levels: The innermost first.
        shown: The name as the query has it.

    Raises:
        RefusedQueryError: If no column has the name, two have it, or one that cannot be seen could.
    """
    partial = any(source.partial and name not in source.names for level in levels for source in level.sources)
    for level in levels:
        hits = list(_hits(name, level))
        if len(hits) > 1 and name not in level.merged:
            raise RefusedQueryError(f"column {shown!r} could be of two tables; qualify it")
        if hits:
            if partial and not all(source.certain for source, _ in hits):
                raise RefusedQueryError(f"column {shown!r} cannot be told from others; qualify or rename it")
            return hits
        if name in level.aliases:
            if partial:
                raise RefusedQueryError(f"{shown!r} is looked up among columns first; write out what it stands for")
            return []
        if any(source.partial for source in level.sources):
            raise RefusedQueryError(f"there is no column {shown!r} in the tables here; qualify names from outside")
    raise RefusedQueryError(f"there is no column {shown!r}")


def written(node: exp.Expression) -> str:
    """A part of a query, shortened, for a message."""
    text = " ".join(node.sql().split())
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _hits(name: str, level: Level) -> Iterator[tuple[Source, int]]:
    for source in level.sources:
        if name in source.names:
            yield source, source.names.index(name)


def _catalogued(name: str, dialect: str) -> str:
    """A table's or schema's name of the catalogue as the dialect compares it."""
    if dialect in _EXACT_TABLES:
        return name
    return _lower_column(name, dialect)


def _lower_column(name: str, dialect: str) -> str:
    """A column's name of the catalogue as the dialect compares it."""
    if dialect in _FOLDS_DOWN:
        return name
    if dialect in _FOLDS_UP:
        return name.upper() if name == name.lower() else name
    return _lower(name, dialect)


def _table_name(part: exp.Expression, dialect: str) -> str:
    """A part of a table's name in a query as the dialect compares it."""
    own = folded(part, dialect)
    return part.name if dialect in _EXACT_TABLES else own


def _lower(name: str, dialect: str) -> str:
    """Lower case; SQLite knows only the letters of ASCII."""
    return (
        "".join(letter.lower() if letter.isascii() else letter for letter in name)
        if dialect == "sqlite"
        else (name.lower())
    )
