"""Who may read what: the policy of one principal, from a file or from a live database's privileges.

A policy file is JSON or TOML:

    {"principals": {
        "reader":  {"tables": {"customers": "*", "sales.orders": ["id", "total"]}},
        "analyst": {"tables": {"products": "*"}, "roles": ["reader"], "views": "owner"},
        "admin":   {"tables": {"*": "*"}}}}

`tables` names tables as the catalogue does (`schema.name`, or the name alone where one table has it), each with "*" for
every column or with a list of columns; "*" for a table means every table. `roles` are other principals, whose tables
are added. `views` says what a granted view lets through: with "strict", the default, no more than what the principal
may read itself; with "owner", whatever it reads, as databases have it. It holds for the principal that states it and is
not inherited. What is not granted is withheld.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

__all__ = ["Columns", "Policy", "Views", "database_policy", "read_policy"]

Columns = frozenset[str] | None
"""Names of the columns that may be read; None for every column."""


class Views(StrEnum):
    """What a granted view lets through: what may be read anyway, or all that it reads."""

    STRICT = "strict"
    OWNER = "owner"


@dataclass(frozen=True)
class Policy:
    """What one principal may read.

    Attributes:
        principal: The name of the user or role.
        tables: Columns by (schema, name) of the table, case-folded; the schema is empty where none is stated.
        views: What a granted view lets through.
        every_table: Whether everything may be read.
        from_database: Whether the grants come from a live database, which may name what the graph does not hold;
            a name of a file that the graph lacks is an error, lest a typing mistake grant or hide in silence.
    """

    principal: str
    tables: Mapping[tuple[str, str], Columns] = field(default_factory=dict)
    views: Views = Views.STRICT
    every_table: bool = False
    from_database: bool = False


def read_policy(path: str | Path, principal: str) -> Policy:
    """The policy of a principal, with what it inherits; `visible` checks its names against a schema.

    Args:
        path: A JSON or TOML file, told by its suffix.
        principal: A name under `principals`.

    Raises:
        ValueError: If the file is missing or broken, the principal or a role is unknown, or roles inherit in a circle.
    """
    path = Path(path)
    principals = _mapping(_read(path).get("principals"), f"{path}: field 'principals'")
    own = {name: _Entry.read(f"{path}, principal {name!r}", entry) for name, entry in principals.items()}
    if principal not in own:
        raise ValueError(f"{path}: there is no principal {principal!r}; use one of {', '.join(sorted(own))}")
    tables: dict[tuple[str, str], Columns] = {}
    every = False
    for name in _inherited(principal, own, path):
        every = every or own[name].every_table
        for key, columns in own[name].tables.items():
            held = tables.get(key, frozenset())
            tables[key] = None if held is None or columns is None else held | columns
    return Policy(principal, tables, own[principal].views, every)


def database_policy(url: str, principal: str, schemas: Sequence[str] | str | None = None) -> Policy:
    """The policy that a live database's own privileges state for a principal.

    A granted view lets through whatever it reads, as databases have it.

    Args:
        url: SQLAlchemy URL of a PostgreSQL, MySQL or MariaDB database, as an account that may see the privileges.
        principal: A role or account; see `privileges.read_grants`.
        schemas: Schemas that count, as in `read_database`.

    Raises:
        ValueError: If the database cannot be read or keeps no such privileges, or the principal is not there.
    """
    from bayeslink.schema.privileges import read_grants

    tables: dict[tuple[str, str], Columns] = {}
    for (schema, table), columns in read_grants(url, principal, schemas).columns.items():
        key = (schema.casefold(), table.casefold())
        if key in tables:
            raise ValueError(
                f"principal={principal!r}: two tables named {table!r} differ in case alone, and policies compare names "
                "without case; rename one, or ask for other schemas"
            )
        tables[key] = columns
    return Policy(principal, tables, Views.OWNER, from_database=True)


@dataclass(frozen=True)
class _Entry:
    """What the file says of one principal."""

    tables: dict[tuple[str, str], Columns]
    roles: tuple[str, ...]
    views: Views
    every_table: bool

    @classmethod
    def read(cls, where: str, entry: object) -> "_Entry":
        fields = _mapping(entry, where)
        if unknown := fields.keys() - {"tables", "roles", "views"}:
            raise ValueError(f"{where}: field {min(unknown)!r} is unknown; use 'tables', 'roles' and 'views'")
        tables: dict[tuple[str, str], Columns] = {}
        stated = dict(_mapping(fields.get("tables", {}), f"{where}, field 'tables'"))
        every = stated.pop("*", None)
        if every not in (None, "*"):
            raise ValueError(f"{where}: table '*' is given {every!r}; every table is granted whole, with '*'")
        for name, columns in stated.items():
            schema, _, table = name.rpartition(".")
            key = (schema.casefold(), table.casefold())
            if key in tables:
                raise ValueError(f"{where}: table {name!r} appears twice; names compare without case")
            tables[key] = None if columns == "*" else frozenset(_names(columns, f"{where}, table {name!r}", "'*' or "))
        views = fields.get("views", Views.STRICT.value)
        if views not in set(Views):
            raise ValueError(f"{where}: views={views!r}; use one of {[str(kind) for kind in Views]}")
        roles = _names(fields.get("roles", []), f"{where}, field 'roles'", "")
        return cls(tables, tuple(roles), Views(str(views)), every == "*")


def _inherited(principal: str, own: Mapping[str, _Entry], path: Path) -> list[str]:
    """The principal and all roles that it has, directly or not."""
    found: list[str] = []

    def follow(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ValueError(f"{path}: roles inherit in a circle: {' -> '.join((*above, name))}; remove one of them")
        if name not in own:
            raise ValueError(f"{path}, principal {above[-1]!r}: there is no role {name!r}; add it or remove it")
        if name not in found:
            found.append(name)
        for role in own[name].roles:
            follow(role, (*above, name))

    follow(principal, ())
    return found


def _read(path: Path) -> Mapping[str, object]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"policy {path}: cannot be read ({error.strerror}); check the path") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"policy {path}: not UTF-8; save the file as UTF-8") from error
    try:
        if path.suffix.lower() == ".toml":
            return tomllib.loads(text)
        return _mapping(json.loads(text, object_pairs_hook=_once), f"policy {path}")
    except RecursionError as error:
        raise ValueError(f"policy {path}: nested too deeply to be a policy") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"policy {path}: not TOML ({error}); repair the file") from error
    except json.JSONDecodeError as error:
        raise ValueError(
            f"policy {path}: not JSON ({error}); repair the file, or name it .toml if it is TOML"
        ) from error


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"policy: field {twice!r} appears twice in one object; keep one")
    return found


def _mapping(value: object, where: str) -> dict[str, object]:
    if value is None:
        raise ValueError(f"{where} is missing; see grounding.policy for the format")
    if not isinstance(value, dict):
        raise ValueError(f"{where} is {type(value).__name__}; make it an object")
    return {str(name): item for name, item in value.items()}


def _names(value: object, where: str, other: str) -> list[str]:
    names = [item for item in value if isinstance(item, str)] if isinstance(value, list) else None
    if names is None or not isinstance(value, list) or len(names) < len(value):
        raise ValueError(f"{where} is {value!r}; make it {other}a list of names")
    return names
