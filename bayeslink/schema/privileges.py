"""What a principal may read, from the privileges that PostgreSQL, MySQL and MariaDB keep.

PostgreSQL is asked for each column of each table whether the role may SELECT it (has_column_privilege) and use its
schema, so that ownership, PUBLIC and the roles that it inherits from count; row-level security hides rows, never
names, and is not looked at. MySQL and MariaDB state SELECT on everything, a schema, a table or a column in
information_schema; grants of roles that the account may take on do not count, but in MariaDB a role is a principal
too. What cannot be seen or told counts as not granted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import sqlalchemy
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from bayeslink.schema.catalogue import is_system_schema
from bayeslink.schema.engine import open_engine, parse_target

__all__ = ["Grants", "read_grants"]

_POSTGRESQL = """
    SELECT n.nspname, c.relname, a.attname
    FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
    AND has_schema_privilege(:principal, n.oid, 'USAGE')
    AND has_column_privilege(:principal, c.oid, a.attnum, 'SELECT')
    ORDER BY n.nspname, c.relname, a.attnum
"""
# A schema may be granted by a pattern, such as `sales\\_%`.
_MYSQL = """
    SELECT c.table_schema, c.table_name, c.column_name
    FROM information_schema.columns c
    WHERE EXISTS (SELECT 1 FROM information_schema.user_privileges p
                  WHERE p.grantee = :grantee AND p.privilege_type = 'SELECT')
    OR EXISTS (SELECT 1 FROM information_schema.schema_privileges p
               WHERE p.grantee = :grantee AND p.privilege_type = 'SELECT' AND c.table_schema LIKE p.table_schema)
    OR EXISTS (SELECT 1 FROM information_schema.table_privileges p
               WHERE p.grantee = :grantee AND p.privilege_type = 'SELECT'
               AND p.table_schema = c.table_schema AND p.table_name = c.table_name)
    OR EXISTS (SELECT 1 FROM information_schema.column_privileges p
               WHERE p.grantee = :grantee AND p.privilege_type = 'SELECT'
               AND p.table_schema = c.table_schema AND p.table_name = c.table_name AND p.column_name = c.column_name)
    ORDER BY c.table_schema, c.table_name, c.ordinal_position
"""
# Roles are not among the users; they are where they have been granted something.
_MYSQL_ACCOUNTS = " UNION ".join(
    f"SELECT grantee FROM information_schema.{scope}_privileges" for scope in ("user", "schema", "table", "column")
)


@dataclass(frozen=True)
class Grants:
    """What a principal may read.

    Attributes:
        principal: Its name in the database.
        columns: Columns that it may SELECT, by (schema, table) as the catalogue spells them; a table of which it may
            read none is not there. The schema is "" where none were asked for, as in the graph of `read_database`.
    """

    principal: str
    columns: Mapping[tuple[str, str], frozenset[str]]


def read_grants(url: str, principal: str, schemas: Sequence[str] | str | None = None) -> Grants:
    """The columns that a principal may SELECT, as the catalogue's privileges say.

    Args:
        url: SQLAlchemy URL of a PostgreSQL, MySQL or MariaDB database, as an account that may see the privileges.
        principal: Role of PostgreSQL; account of MySQL or MariaDB, `user@host` or `user` where one host alone has it.
        schemas: Schemas that count, "*" for all but the system's; by default the connection's default schema.

    Raises:
        ValueError: If the database cannot be read or keeps no privileges of these kinds, or the principal is not
            there. No message shows a password.
    """
    target = parse_target(url)
    engine = open_engine(target)
    backend = engine.dialect.name
    if backend not in ("postgresql", "mysql", "mariadb"):
        raise ValueError(f"{target}: {backend} has no privileges that are read; write the grants down in a file")
    try:
        with engine.connect() as connection:
            rows = (_postgresql if backend == "postgresql" else _mysql)(connection, principal)
    except SQLAlchemyError as error:
        # From None: the driver's own error may quote the connection string.
        raise ValueError(f"{target}: the privileges cannot be read ({target.reason(error)})") from None
    finally:
        engine.dispose()
    default = engine.dialect.default_schema_name
    every = schemas in ("*", "all", ["*"], ("*",))
    wanted = [default] if schemas is None else schemas
    columns: dict[tuple[str, str], set[str]] = {}
    for schema, table, column in rows:
        if not is_system_schema(schema) if every else schema in wanted:
            columns.setdefault(("" if schemas is None else schema, table), set()).add(column)
    return Grants(principal, MappingProxyType({place: frozenset(names) for place, names in columns.items()}))


def _postgresql(connection: Connection, principal: str) -> list[tuple[str, str, str]]:
    found = connection.execute(sqlalchemy.text(_POSTGRESQL), {"principal": principal})
    return [(schema, table, column) for schema, table, column in found]


def _mysql(connection: Connection, principal: str) -> list[tuple[str, str, str]]:
    if connection.execute(sqlalchemy.text("SHOW VARIABLES LIKE 'partial_revokes'")).all():
        revoked = connection.execute(sqlalchemy.text("SELECT @@partial_revokes")).scalar()
        if revoked:
            raise ValueError(
                f"principal={principal!r}: with partial_revokes on, MySQL's information_schema does not show what is "
                "revoked; write the grants down in a file"
            )
    accounts = sorted(str(name) for name in connection.execute(sqlalchemy.text(_MYSQL_ACCOUNTS)).scalars())
    user, _, host = principal.rpartition("@") if "@" in principal else (principal, "", "")
    named = [name for name in accounts if name == f"'{user}'@'{host}'"] if host else []
    named = named or [name for name in accounts if not host and name.rpartition("@")[0] == f"'{user}'"]
    if len(named) != 1:
        hosts = f"name one of {', '.join(named)}" if named else "check the name and the right to see it"
        raise ValueError(f"principal={principal!r}: {len(named)} accounts of that name are seen; {hosts}")
    found = connection.execute(sqlalchemy.text(_MYSQL), {"grantee": named[0]})
    return [(schema, table, column) for schema, table, column in found]
