import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayeslink.schema.corpus import Corpus, Question
from bayeslink.schema.gold import UnresolvedQueryError, gold_tables, group_key, resolve
from bayeslink.schema.graph import Column, SchemaGraph, Table, build_graph


def schema(*names: str, dialect: str = "sqlite") -> SchemaGraph:
    tables = []
    for name in names:
        schema_name, _, bare = name.rpartition("/")
        tables.append(Table(bare, (Column("id"),), schema=schema_name or None))
    return build_graph("d", tables, dialect=dialect)


PETS = schema("Owner", "Pet", "Visit", "Order Details")


def read(query: str, graph: SchemaGraph = PETS) -> set[str]:
    return {graph.table_names[index] for index in gold_tables(query, graph)}


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("SELECT * FROM OWNER", {"Owner"}),
        ("select count(*) from pet;", {"Pet"}),
        ("SELECT o.id FROM owner AS visit JOIN pet p ON p.id = visit.id", {"Owner", "Pet"}),
        ("SELECT 1 FROM Owner, Pet", {"Owner", "Pet"}),
        ("SELECT 1 FROM (Owner NATURAL JOIN (Pet JOIN Visit))", {"Owner", "Pet", "Visit"}),
        ("SELECT * FROM (SELECT id FROM (SELECT id FROM Visit) AS Pet) AS Owner", {"Visit"}),
        ("SELECT (SELECT max(id) FROM Pet) FROM Owner", {"Owner", "Pet"}),
        ("SELECT id FROM Owner o WHERE EXISTS (SELECT 1 FROM Pet WHERE Pet.id = o.id)", {"Owner", "Pet"}),
        ("SELECT id FROM Owner WHERE id NOT IN (SELECT id FROM Visit)", {"Owner", "Visit"}),
        ("SELECT id FROM Owner WHERE id IN Visit", {"Owner", "Visit"}),
        ("SELECT id FROM Owner WHERE id IN main.Visit", {"Owner", "Visit"}),
        ("SELECT id FROM Owner GROUP BY id HAVING count(*) > (SELECT 1 FROM Pet)", {"Owner", "Pet"}),
        ("SELECT id FROM Owner ORDER BY (SELECT 1 FROM Pet)", {"Owner", "Pet"}),
        (
            "SELECT id FROM Owner UNION SELECT id FROM Pet EXCEPT SELECT id FROM Visit",
            {"Owner", "Pet", "Visit"},
        ),
        ('SELECT * FROM "order details"', {"Order Details"}),
        ("SELECT * FROM `Order Details`", {"Order Details"}),
        ("SELECT * FROM [Order Details]", {"Order Details"}),
        ("SELECT * FROM main.Owner", {"Owner"}),
        ('SELECT id FROM Owner WHERE id = "Pet"', {"Owner"}),
        ("SELECT id FROM Owner WHERE id = 'SELECT 1 FROM Pet' -- FROM Visit", {"Owner"}),
        ("SELECT value FROM Pet, json_each(Pet.id)", {"Pet"}),
        ("SELECT id FROM Owner; -- done", {"Owner"}),
    ],
)
def test_tables_read(query: str, tables: set[str]):
    assert read(query) == tables


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("WITH x AS (SELECT id FROM Pet) SELECT * FROM x JOIN Owner", {"Pet", "Owner"}),
        ("WITH x AS (SELECT id FROM Pet), y AS (SELECT * FROM x) SELECT * FROM Y", {"Pet"}),
        # A CTE named as a table hides the table, and yet reads it in its own body.
        ("WITH Pet AS (SELECT id FROM Visit) SELECT * FROM pet", {"Visit"}),
        ("WITH Pet AS (SELECT id FROM Pet) SELECT * FROM PET", {"Pet"}),
        (
            "WITH a AS (SELECT id FROM Pet), Pet AS (SELECT id FROM Visit) SELECT * FROM a, Pet",
            {"Pet", "Visit"},
        ),
        ("WITH RECURSIVE Pet AS (SELECT 1 UNION SELECT id + 1 FROM Pet) SELECT * FROM Pet, Owner", {"Owner"}),
        # Outside of its query the name is the table again.
        ("SELECT * FROM (WITH Pet AS (SELECT id FROM Visit) SELECT * FROM Pet) q JOIN Pet", {"Visit", "Pet"}),
        (
            "SELECT * FROM (WITH Pet AS (SELECT id FROM Visit) SELECT 1 FROM Pet) UNION SELECT * FROM Pet",
            {"Visit", "Pet"},
        ),
        # Inside of it, in nested queries too, it is not; a qualified name is never a CTE.
        (
            "WITH Pet AS (SELECT id FROM Visit) SELECT 1 FROM Owner WHERE id IN (SELECT id FROM Pet)",
            {"Visit", "Owner"},
        ),
        ("WITH Pet AS (SELECT id FROM Visit) SELECT 1 UNION SELECT id FROM Pet", {"Visit"}),
        ("WITH Pet AS (SELECT id FROM Visit) SELECT * FROM Pet, main.Pet", {"Visit", "Pet"}),
        # SQLite needs no RECURSIVE, and allows references to later expressions.
        ("WITH x AS (SELECT id FROM Pet UNION ALL SELECT id + 1 FROM x) SELECT * FROM x", {"Pet"}),
        ("WITH x AS (SELECT id FROM y), y AS (SELECT id FROM Pet) SELECT * FROM x", {"Pet"}),
    ],
)
def test_common_table_expressions_hide_tables_in_their_scope_only(query: str, tables: set[str]):
    assert read(query) == tables


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT FROM WHERE", "does not parse as sqlite"),
        ("SELECT 'open FROM Pet", "does not parse as sqlite"),
        ("SELECT * FROM Pets", "unknown table Pets"),
        ("SELECT * FROM (WITH x AS (SELECT 1) SELECT * FROM x) q, x", "unknown table x"),
        ("SELECT id FROM Owner WHERE id IN Pets", "unknown table Pets"),
        ("SELECT 1", "reads no table"),
        ("WITH x AS (SELECT 1) SELECT * FROM x", "reads no table"),
        ("WITH x AS (SELECT 1 UNION SELECT * FROM x) SELECT * FROM x", "reads no table"),
        ("DELETE FROM Pet", "is not a query but DELETE"),
        ("UPDATE Pet SET id = 1", "is not a query but UPDATE"),
        ("INSERT INTO Pet SELECT id FROM Owner", "is not a query but INSERT"),
        ("CREATE TABLE x AS SELECT * FROM Pet", "is not a query but CREATE"),
        ("DROP TABLE Pet", "is not a query but DROP"),
        ("SELECT 1 FROM Pet; SELECT 1 FROM Owner", "holds 2 statements"),
        ("", "holds 0 statements"),
    ],
)
def test_unresolved_queries_say_why(query: str, reason: str):
    with pytest.raises(UnresolvedQueryError, match=reason):
        gold_tables(query, PETS)


def test_writing_inside_a_query_is_refused():
    postgres = schema("Pet", dialect="postgres")
    for query in (
        "WITH x AS (DELETE FROM Pet RETURNING id) SELECT * FROM x",
        "SELECT id INTO other FROM Pet",
    ):
        with pytest.raises(UnresolvedQueryError, match="is not a query"):
            gold_tables(query, postgres)


def test_long_conditions_do_not_exhaust_the_stack():
    query = "SELECT id FROM Pet WHERE " + " OR ".join(f"id = {number}" for number in range(3000))
    assert read(query) == {"Pet"}


def test_qualified_names():
    graph = schema("a/t", "b/t", "a/u")
    assert read("SELECT * FROM a.t JOIN u", graph) == {"a.t", "a.u"}
    with pytest.raises(UnresolvedQueryError, match="ambiguous table t"):
        read("SELECT * FROM t", graph)
    with pytest.raises(UnresolvedQueryError, match=r"unknown table c\.t"):
        read("SELECT * FROM c.t", graph)


def test_dotted_names_and_wildcards_of_warehouses():
    names = ("p.d.events_20240101", "p.d.events_20240102", "p.d.users", "p.e.log_*")
    graph = schema(*names, dialect="bigquery")
    assert read("SELECT 1 FROM `p.d.users`", graph) == {"p.d.users"}
    assert read("SELECT 1 FROM d.users", graph) == {"p.d.users"}
    assert read("SELECT 1 FROM `p.d.events_*`", graph) == set(names[:2])
    assert read("SELECT 1 FROM `p.d.events_20240102`, UNNEST(hits)", graph) == {names[1]}
    assert read("SELECT 1 FROM `p.e.log_2024`", graph) == {names[3]}
    assert read("SELECT 1 FROM `p.e.log_*`", graph) == {names[3]}
    assert read("DECLARE x INT64 DEFAULT 1; SELECT x FROM d.users;", graph) == {"p.d.users"}
    with pytest.raises(UnresolvedQueryError, match="unknown table"):
        read("SELECT 1 FROM `p.d.sessions_*`", graph)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("SELECT Name FROM pet", "select  name\nFROM Pet ;", True),
        ("SELECT `Name` FROM pet", 'SELECT "Name" FROM pet', True),
        ("SELECT p.`Name` FROM pet p", "SELECT P.name FROM pet AS p", True),
        ("SELECT 1 FROM t WHERE a <> 2", "SELECT 1 FROM t WHERE a != 2 -- why", True),
        ("SELECT COUNT(*) FROM t", "SELECT count( * ) FROM t", True),
        ("SELECT 1 FROM t WHERE a = 'X'", "SELECT 1 FROM t WHERE a = 'x'", False),
        ('SELECT 1 FROM t WHERE a = "X"', 'SELECT 1 FROM t WHERE a = "x"', False),
        ("SELECT 1 FROM t WHERE a = 'x y'", "SELECT 1 FROM t WHERE a = 'x  y'", False),
        ("SELECT a FROM t", "SELECT b FROM t", False),
        ("SELECT a FROM t", "SELECT DISTINCT a FROM t", False),
        ("SELECT FROM  WHERE", "SELECT FROM WHERE", True),
        ("SELECT FROM WHERE", "select FROM WHERE", False),
    ],
)
def test_group_key_folds_what_does_not_matter(first: str, second: str, same: bool):
    assert (group_key(first) == group_key(second)) is same


def test_group_key_knows_the_dialect_of_quotes():
    upper, lower = 'SELECT 1 FROM t WHERE a = "X"', 'SELECT 1 FROM t WHERE a = "x"'
    assert group_key(upper, "postgres") == group_key(lower, "postgres")  # names
    assert group_key(upper, "mysql") != group_key(lower, "mysql")  # strings


@given(
    column=st.sampled_from(["id", "Name", "x_1"]),
    table=st.sampled_from(["pet", "Owner"]),
    value=st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=6),
    space=st.sampled_from([" ", "\n", "\t  "]),
)
def test_group_key_is_blind_to_white_space_and_case_outside_literals(column, table, value, space):
    literal = "'" + value.replace("'", "''") + "'"
    plain = f"SELECT {column} FROM {table} WHERE {column} = {literal}"
    parts = ["select", column.upper(), "FROM", table.lower(), "wHere", column.title(), "=", literal]
    assert group_key(plain) == group_key(space.join(parts))


def test_resolution_counts_every_question():
    questions = tuple(
        Question(str(number), "d", "?", query=query)
        for number, query in enumerate(
            [
                "SELECT 1 FROM Pet",
                "SELECT 1 FROM Gone",
                None,
                "SELECT 1 FROM Gone",
                "SELECT 1 FROM Owner, Pet",
            ]
        )
    )
    found = resolve(Corpus("c", {"d": PETS}, questions))
    assert found.gold == {"0": frozenset({1}), "4": frozenset({0, 1})}
    assert found.failures == (("1", "unknown table Gone"), ("3", "unknown table Gone"))
    assert (found.num_with_query, found.num_without_query, found.num_questions) == (4, 1, 5)


def test_resolve_shows_progress_only_when_asked(capsys: pytest.CaptureFixture[str]):
    corpus = Corpus("c", {"d": PETS}, (Question("q", "d", "?", query="SELECT 1 FROM Pet"),))
    resolve(corpus)
    assert capsys.readouterr().err == ""
    resolve(corpus, progress=True)
    assert "gold tables of c" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "split", "resolved", "total"),
    [
        ("spider", "dev", 1034, 1034),
        ("bird", "dev", 1534, 1534),
        pytest.param("spider", "train", 6999, 7000, marks=pytest.mark.slow),
        pytest.param("bird-train", "train", 9286, 9428, marks=pytest.mark.slow),
    ],
)
def test_gold_tables_of_the_benchmarks(corpora, name: str, split: str, resolved: int, total: int):
    found = resolve(corpora[name].select(split=split))
    assert (len(found.gold), found.num_questions) == (resolved, total)
    assert all(found.gold.values())
    assert all(reason.startswith("unknown table ") for _, reason in found.failures)
