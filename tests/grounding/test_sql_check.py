"""Each way in which SQL reads: refused where it may read what is withheld, permitted in the query beside it.

`shop` is what may be seen of a larger database: table `p` has columns that are withheld, other tables are not shown.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayeslink.grounding.access import Read, SqlCheck, check_sql, visible
from bayeslink.schema.graph import Column, SchemaGraph, Table, build_graph
from bayeslink.simulation.authorizer import empty_database, sqlite_reads
from bayeslink.simulation.sql_worlds import COMMON_FORMS, RARE_FORMS, World, random_query, random_world


def table(name: str, columns: str, **more) -> Table:
    return Table(name, tuple(Column(column) for column in columns.split()), **more)


def shop(dialect: str = "sqlite") -> SchemaGraph:
    tables = [
        table("c", "id name doc"),
        table("p", "id c_id total", partial=True),
        table("n", "k v"),
        table("one", "k"),
    ]
    return build_graph("shop", tables, dialect=dialect)


def check(sql: str, dialect: str = "sqlite", **more) -> SqlCheck:
    return check_sql(sql, shop(dialect), **more)


PAIRS = [
    # names
    ("SELECT pay FROM p", "SELECT total FROM p"),
    ("SELECT p.pay FROM p", "SELECT P.Total FROM p"),
    ("SELECT x FROM wages", "SELECT id FROM C"),
    ("SELECT C.pay FROM p AS c", "SELECT C.total FROM p AS c"),
    ("SELECT p.total FROM p AS q", "SELECT Q.total FROM p AS q"),
    ("SELECT id FROM c, p", "SELECT c.id FROM c, p"),
    ("SELECT c.id FROM c, p AS c", "SELECT c.id FROM c, p AS d"),
    ("SELECT id FROM other.c", "SELECT id FROM main.c"),
    ('SELECT "pay" FROM p', 'SELECT "total" FROM p'),
    ('SELECT id FROM p WHERE c_id = "pay"', "SELECT id FROM p WHERE c_id = 'pay'"),
    ('SELECT id FROM c WHERE name = "rowid"', 'SELECT id FROM c WHERE name = "Paris"'),
    ("SELECT 'p'.id FROM p", "SELECT [p].[id] FROM `p`"),
    ("SELECT p.'id' FROM p", "SELECT p.id AS 'id' FROM p"),
    ("SELECT rowid FROM p", "SELECT id FROM p"),
    ("SELECT _rowid_, oid FROM c", "SELECT id FROM c"),
    # stars
    ("SELECT * FROM p", "SELECT * FROM c"),
    ("SELECT p.* FROM c, p", "SELECT c.* FROM c, p"),
    ("SELECT count(DISTINCT p.total), * FROM p", "SELECT count(DISTINCT p.total), count(*) FROM p"),
    ("SELECT 1 FROM c WHERE EXISTS (SELECT * FROM p)", "SELECT 1 FROM c WHERE EXISTS (SELECT 1 FROM p)"),
    ("SELECT * FROM c, p", "SELECT * FROM c, (SELECT total FROM p) AS q"),
    # joins
    ("SELECT c.id FROM c NATURAL JOIN p", "SELECT c.id FROM c NATURAL JOIN n"),
    ("SELECT 1 FROM c JOIN p USING (name)", "SELECT id FROM c JOIN p USING (id)"),
    ("SELECT 1 FROM p JOIN n ON 1 JOIN one USING (k)", "SELECT 1 FROM n JOIN one USING (k)"),
    ("SELECT 1 FROM p JOIN c ON v = 1 JOIN n ON 1", "SELECT 1 FROM p JOIN c ON name = 1 JOIN n ON v = 1"),
    ("SELECT 1 FROM (c JOIN p ON pay = 1)", "SELECT 1 FROM (c JOIN p ON total = 1)"),
    ("SELECT p.id FROM (p AS p JOIN wages ON 1)", "SELECT p.id FROM (p AS p JOIN c ON 1)"),
    # queries in queries
    ("SELECT id FROM c WHERE id IN (SELECT pay FROM p)", "SELECT id FROM c WHERE id IN (SELECT total FROM p)"),
    ("SELECT id FROM c WHERE id IN p", "SELECT id FROM c WHERE id IN one"),
    ("SELECT id FROM c WHERE id IN wages", "SELECT id FROM c WHERE id IN (k, 1)".replace("k", "name")),
    ("SELECT (SELECT pay FROM p) FROM c", "SELECT (SELECT max(total) FROM p WHERE c_id = c.id) FROM c"),
    (
        "SELECT 1 FROM c WHERE EXISTS (SELECT 1 FROM p WHERE name = 1)",
        "SELECT 1 FROM c WHERE EXISTS (SELECT 1 FROM p WHERE c.name = 1)",
    ),
    (
        "SELECT 1 FROM c AS q WHERE EXISTS (SELECT 1 FROM p AS q WHERE q.name)",
        "SELECT 1 FROM c AS q WHERE EXISTS (SELECT 1 FROM p AS r WHERE q.name)",
    ),
    ("SELECT pay FROM (SELECT total FROM p) AS q", "SELECT total FROM (SELECT total FROM p) AS q"),
    ("SELECT x FROM (SELECT pay AS x FROM p) AS q", "SELECT x FROM (SELECT total AS x FROM p) AS q"),
    ("SELECT 1 FROM c ORDER BY (SELECT pay FROM p)", "SELECT 1 FROM c ORDER BY (SELECT total FROM p)"),
    ("SELECT 1 FROM c LIMIT (SELECT pay FROM p)", "SELECT 1 FROM c LIMIT (SELECT 2)"),
    # common table expressions
    ("WITH q AS (SELECT pay FROM p) SELECT 1", "WITH q AS (SELECT total FROM p) SELECT * FROM Q"),
    ("WITH q(a) AS (SELECT * FROM p) SELECT a FROM q", "WITH q(a) AS (SELECT id FROM p) SELECT a FROM q"),
    ("WITH c AS (SELECT 1 AS x) SELECT name FROM c", "WITH c AS (SELECT 1 AS x) SELECT x FROM c"),
    ("WITH c AS (SELECT 1 AS x) SELECT 1 FROM main.wages", "WITH wages AS (SELECT 1 AS x) SELECT x FROM wages"),
    (
        "WITH a AS (SELECT id FROM b, p), b AS (SELECT 1 AS y) SELECT 1 FROM a",
        "WITH b AS (SELECT 1 AS y), a AS (SELECT y FROM b, p) SELECT 1 FROM a",
    ),
    (
        "SELECT * FROM (WITH q AS (SELECT 1 AS x) SELECT x FROM q), q",
        "SELECT * FROM (WITH q AS (SELECT 1 AS x) SELECT x FROM q), c",
    ),
    (
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT pay FROM r, p) SELECT i FROM r",
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + total FROM r, p) SELECT i FROM r",
    ),
    (
        "WITH a AS (SELECT v FROM n, p), n AS (SELECT 1 AS y) SELECT 1 FROM a",
        "WITH m AS (SELECT 1 AS y), a AS (SELECT v FROM n, p) SELECT 1 FROM a",
    ),
    # set operations
    ("SELECT id FROM c UNION SELECT pay FROM p", "SELECT id FROM c UNION SELECT total FROM p ORDER BY id"),
    ("SELECT id FROM c EXCEPT SELECT * FROM p", "SELECT id, name, doc FROM c EXCEPT SELECT * FROM c"),
    ("SELECT id FROM c UNION SELECT id FROM p ORDER BY pay", "SELECT id FROM c UNION SELECT id FROM p ORDER BY 1"),
    # names of results
    ("SELECT count(*) AS pay FROM p GROUP BY pay", "SELECT count(*) AS pay FROM c GROUP BY pay"),
    ("SELECT total AS pay FROM p WHERE pay > 1", "SELECT total AS pay FROM p WHERE total > 1"),
    ("SELECT total AS pay FROM p ORDER BY pay + 1", "SELECT total AS pay FROM p ORDER BY pay"),
    ("SELECT sum(total) AS pay FROM p HAVING pay > 1", "SELECT sum(total) AS pay FROM p HAVING sum(total) > 1"),
    # windows
    ("SELECT sum(total) OVER (ORDER BY pay) FROM p", "SELECT sum(total) OVER (ORDER BY id) FROM p"),
    (
        "SELECT sum(total) OVER w FROM p WINDOW w AS (PARTITION BY pay)",
        "SELECT sum(total) OVER w FROM p WINDOW w AS (PARTITION BY id)",
    ),
    ("SELECT sum(total) FILTER (WHERE pay > 1) FROM p", "SELECT sum(total) FILTER (WHERE id > 1) FROM p"),
    # functions
    ("SELECT load_extension('x')", "SELECT upper(name) FROM c"),
    ("SELECT readfile('x') FROM c", "SELECT printf('%d', id), total(id) FROM c"),
    ("SELECT * FROM pragma_table_info('p')", "SELECT e.value FROM c, json_each(c.doc) AS e"),
    ("SELECT 1 FROM c, json_each((SELECT pay FROM p)) AS e", "SELECT 1 FROM c, json_each((SELECT total FROM p)) AS e"),
    ("SELECT id FROM c WHERE c MATCH 'x'", "SELECT id FROM c WHERE name LIKE 'x'"),
    ("SELECT value FROM p, json_each(p.total)".replace("value", "pay"), "SELECT value FROM p, json_each(p.total)"),
    ("SELECT json_extract(pay, '$.a') FROM p", "SELECT json_extract(total, '$.a'), doc ->> '$.a' FROM p, c"),
    ("SELECT name FROM sqlite_master", "SELECT name FROM c"),
    # not plain queries
    ("SELECT 1; SELECT 2", "SELECT 1;"),
    ("", "SELECT 1 -- one"),
    ("SELECT FROM WHERE", "SELECT id FROM c WHERE id > 1"),
    ("SELECT /*! pay */ id FROM p", "SELECT /* pay */ id FROM p"),
    ("SELECT id /* /* */ FROM p", "SELECT id /* */ FROM p"),
    ("SELECT id FROM\u00a0p", "SELECT id FROM p"),
    ("SELECT id FROM p INDEXED BY i", "SELECT id FROM p"),
    ("SELECT id FROM c WHERE id = ?", "SELECT id FROM c WHERE id = 1"),
]


@pytest.mark.parametrize(("outside", "inside"), PAIRS)
def test_what_reads_outside_is_refused_and_the_query_beside_it_is_not(outside, inside):
    refused = check(outside)
    assert not refused.allowed
    assert refused.reason
    assert refused.reads == ()
    assert "\n" not in refused.reason
    permitted = check(inside)
    assert permitted == replace(permitted, allowed=True, reason="")


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO c SELECT id, id, id FROM p",
        "UPDATE c SET id = 1",
        "DELETE FROM c",
        "DROP TABLE c",
        "CREATE TABLE x AS SELECT id FROM c",
        "WITH q AS (SELECT 1) DELETE FROM c",
        "PRAGMA table_info(c)",
        "ATTACH 'x' AS y",
        "EXPLAIN SELECT id FROM c",
        "VACUUM",
        "VALUES (1)",
    ],
)
def test_what_is_no_query_is_refused(sql):
    assert not check(sql).allowed


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM c FOR UPDATE",
        "SELECT id INTO x FROM c",
        "COPY c TO 'x.csv'",
        "SET search_path = x",
        "EXPLAIN ANALYZE DELETE FROM c",
        "CALL f()",
        "DO $$ BEGIN END $$",
        "WITH q AS (DELETE FROM c RETURNING id) SELECT id FROM q",
        "SELECT pg_read_file('x')",
        "SELECT lo_import('x')",
        "SELECT query_to_xml('SELECT 1', true, true, '')",
        "SELECT * FROM dblink('x', 'y') AS t(a int)",
        "SELECT nextval('s')",
        "SELECT set_config('a', 'b', false)",
        "SELECT s.lower(name) FROM c",
        "SELECT 'wages'::regclass FROM c",
        "SELECT table_name FROM information_schema.tables",
        "SELECT relname FROM pg_catalog.pg_class",
        "SELECT ctid FROM p",
        "SELECT xmin, tableoid FROM c",
        "SELECT p FROM p",
        "SELECT row_to_json(p) FROM p",
        "SELECT count(p) FROM p",
        "SELECT count(p.*) FROM p",
        "SELECT (p).pay FROM p",
        "SELECT pay(p) FROM p",
        "SELECT q.a FROM p AS q(a, b)",
        "SELECT x.pay FROM c, LATERAL (SELECT pay FROM p) AS x",
        "SELECT x.a FROM p, LATERAL (SELECT name AS a) AS x, c",
        "SELECT id FROM p TABLESAMPLE SYSTEM (10)",
        'SELECT U&"p\\0061y" FROM p',
        "TABLE p",
        "SELECT 1 FROM n, p JOIN c ON v = 1",
        'SELECT "Total" FROM p',
        'SELECT total FROM "P"',
        "SELECT 1 FROM c WHERE name = $1",
    ],
)
def test_postgres_refuses(sql):
    assert not check(sql, "postgres").allowed


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT c FROM c",
        "SELECT row_to_json(c) FROM c",
        "SELECT count(c.*) FROM c",
        "SELECT (c).name FROM c",
        "SELECT q.a, q.b, q.doc FROM c AS q(a, b)",
        "SELECT x.total FROM c, LATERAL (SELECT total FROM p WHERE p.c_id = c.id) AS x",
        "SELECT c.doc -> 'a' ->> 'b', c.doc::jsonb @> '{}' FROM c",
        "SELECT e.value FROM c, jsonb_array_elements(c.doc) AS e",
        "SELECT u.v FROM c, unnest(c.doc) AS u(v)",
        "SELECT date_trunc('month', total), total::date, to_char(total, 'YYYY'), now() FROM p",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY total), string_agg(id::text, ',' ORDER BY id) FROM p",
        "SELECT DISTINCT ON (c_id) c_id, total FROM p ORDER BY c_id, total DESC",
        "SELECT c_id, count(*) FROM p GROUP BY GROUPING SETS ((c_id), ())",
        "WITH c AS (SELECT * FROM c) SELECT name FROM c",
        "SELECT TOTAL FROM P",
        'SELECT "total" FROM "p"',
        "TABLE c",
        "SELECT 1 FROM p, n JOIN c ON v = 1",
        "SELECT id FROM p WHERE total = ANY (SELECT id FROM c) FETCH FIRST 3 ROWS ONLY",
    ],
)
def test_postgres_permits(sql):
    found = check(sql, "postgres")
    assert found.reason == ""


@pytest.mark.parametrize(
    ("dialect", "outside", "inside"),
    [
        ("mysql", "SELECT id --1, pay\nFROM p", "SELECT id -- 1, pay\nFROM p"),
        ("mysql", "SELECT id FROM P", "SELECT ID FROM p"),
        ("mysql", "WITH q AS (SELECT 1 AS x) SELECT x FROM Q", "WITH q AS (SELECT 1 AS x) SELECT x FROM q"),
        ("mysql", "SELECT LOAD_FILE('x') FROM c", "SELECT IFNULL(name, 'x'), `id` FROM c"),
        ("mysql", "SELECT id FROM c INTO OUTFILE 'x'", 'SELECT id FROM c WHERE name = "x"'),
        ("duckdb", "SELECT * FROM read_csv('x')", "SELECT * FROM c"),
        ("duckdb", "SELECT * FROM 'x.csv'", "FROM c"),
        ("duckdb", "SELECT COLUMNS('.*') FROM p", "SELECT id FROM p"),
        ("duckdb", "SELECT * EXCLUDE (id) FROM p", "SELECT * EXCLUDE (id) FROM c"),
        ("duckdb", "SELECT * FROM p, (SELECT k FROM c)", "SELECT x.k FROM c, (SELECT k FROM n) AS x"),
        ("duckdb", "SELECT c.doc.a FROM p", "SELECT c.doc.a, doc.b FROM c"),
        ("duckdb", "SELECT id FROM p POSITIONAL JOIN c", "SELECT p.id FROM p JOIN c ON p.c_id = c.id"),
        ("duckdb", "SUMMARIZE p", "SELECT count(*) FROM p"),
        ("snowflake", "SELECT id FROM IDENTIFIER('p')", "SELECT id FROM p"),
        ("snowflake", 'SELECT "total" FROM p', 'SELECT "TOTAL" FROM p'),
        ("bigquery", "SELECT p FROM p", "SELECT c.name FROM c"),
        ("bigquery", "SELECT e FROM p, UNNEST(p.pay) AS e", "SELECT e FROM c, UNNEST(c.doc) AS e"),
        (
            "tsql",
            "SELECT x.a FROM c CROSS APPLY (SELECT pay AS a FROM p) AS x",
            "SELECT TOP 3 x.a FROM c CROSS APPLY (SELECT total AS a FROM p) AS x",
        ),
        ("tsql", "SELECT * FROM OPENROWSET('a', 'b', 'c')", "SELECT [id] FROM [c]"),
        ("oracle", "SELECT level FROM c CONNECT BY level < 3", "SELECT id FROM c FETCH FIRST 3 ROWS ONLY"),
    ],
)
def test_other_dialects(dialect, outside, inside):
    assert not check(outside, dialect).allowed
    assert check(inside, dialect).reason == ""


def test_tables_of_one_name_in_two_schemas():
    tables = [table("t", "a", schema="x"), table("t", "b", schema="y", partial=True), table("u", "d", schema="x")]
    graph = build_graph("d", tables, dialect="postgres")
    assert check_sql("SELECT x.t.a, y.t.b FROM x.t, y.t", graph).reads == (("x.t", ("a",)), ("y.t", ("b",)))
    assert not check_sql("SELECT x.t.b FROM x.t, y.t", graph).allowed
    assert not check_sql("SELECT t.a FROM x.t, y.t", graph).allowed
    assert not check_sql("SELECT z.t.a FROM z.t", graph).allowed
    # An unqualified name means a table of the default schema, and only if it is known which that is.
    assert not check_sql("SELECT d FROM u", graph).allowed
    assert check_sql("SELECT d FROM u", graph, default_schema="x").allowed
    assert check_sql("SELECT b FROM t", graph, default_schema="y").allowed
    assert not check_sql("SELECT a FROM t", graph, default_schema="y").allowed


def test_views_are_read_through_their_definitions():
    def view(definition, **more):
        return table("v", "a", is_view=True, definition=definition, **more)

    def allowed(definition, sql="SELECT a FROM v", **more):
        return check_sql(sql, build_graph("d", [*shop().tables, view(definition)]), **more)

    assert allowed("SELECT id AS a FROM c").reads == (("c", ("id",)), ("v", ("a",)))
    assert allowed("CREATE VIEW v (a) AS SELECT id FROM c").allowed
    assert not allowed("SELECT pay AS a FROM p").allowed
    assert "pay" not in allowed("SELECT pay AS a FROM p").reason
    assert not allowed("SELECT a FROM v").allowed
    assert not allowed("DELETE FROM c").allowed
    assert not allowed(None).allowed
    assert allowed(None, owner_views=True).allowed
    assert not allowed("SELECT id AS a FROM c", "CREATE VIEW w AS SELECT a FROM v").allowed
    partial = build_graph("d", [view("SELECT id AS a FROM c", partial=True), *shop().tables])
    assert not check_sql("SELECT * FROM v", partial).allowed


def test_what_is_read_is_told_in_the_order_of_the_graph():
    found = check("SELECT n.v, count(*) FROM n, p AS q WHERE Q.TOTAL > (SELECT max(id) FROM c) GROUP BY n.v")
    assert found == SqlCheck(True, "", (Read("c", ("id",)), Read("p", ("total",)), Read("n", ("v",))))
    assert check("SELECT count(*) FROM p").reads == (("p", ()),)


def test_deep_queries_are_refused_or_answered_but_never_fail():
    assert check("SELECT id FROM c WHERE " + " OR ".join(f"id = {n}" for n in range(400))).allowed
    assert not check("SELECT id FROM c WHERE " + "(" * 5000 + "1" + ")" * 5000).allowed


FORM = st.sampled_from([*COMMON_FORMS, *RARE_FORMS])


def valid(form: str, seed: int) -> tuple[World, str, bool]:
    """A world, a query that SQLite accepts on it, and whether all that it reads is granted."""
    rng = np.random.default_rng(seed)
    while True:
        world = random_world(rng)
        query = random_query(form, world, rng)
        database = empty_database(world.graph)
        reads = sqlite_reads(database, query.sql)
        database.close()
        if reads is not None:
            return world, query.sql, world.permits(reads | query.compared)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(FORM, st.integers(0, 10**6))
def test_sqlite_reads_nothing_outside_of_what_is_permitted(form, seed):
    world, sql, inside = valid(form, seed)
    found = visible(world.graph, world.policy).check(sql)
    assert inside or not found.allowed, sql
    if form in COMMON_FORMS and form != "correlated":
        assert found.allowed or not inside, (sql, found.reason)


def test_nearly_all_that_reads_what_is_granted_is_permitted():
    cases = [valid(form, seed) for form in COMMON_FORMS for seed in range(25)]
    answers = [visible(world.graph, world.policy).check(sql).allowed for world, sql, inside in cases if inside]
    assert len(answers) > 250
    assert sum(answers) / len(answers) > 0.99


@settings(max_examples=150, deadline=None, derandomize=True)
@given(FORM, st.integers(0, 10**6))
def test_the_answer_does_not_depend_on_what_is_withheld(form, seed):
    world, sql, _ = valid(form, seed)
    seen = visible(world.graph, world.policy)
    # The same view of a database in which withheld columns have other names and withheld tables are gone.
    tables = []
    for node in world.graph.tables:
        granted = world.granted(node)
        if granted and not node.is_view:
            columns = (c if c.name in granted else Column(f"other{n}") for n, c in enumerate(node.columns))
            tables.append(replace(node, columns=tuple(columns), description=None))
    tables += [node for node in seen.graph.tables if node.is_view]
    kept = {node.key for node in tables}
    policy = replace(world.policy, tables={key: own for key, own in world.policy.tables.items() if key in kept})
    if all(not node.is_view for node in tables):
        assert visible(build_graph("world", tables), policy).check(sql) == seen.check(sql)


@pytest.mark.parametrize("own", [True, False])
def test_the_oracle_sees_columns_of_every_clause(own):
    database = empty_database(shop())
    reads = sqlite_reads(database, "SELECT c.name FROM c JOIN p ON p.c_id = c.id GROUP BY c.doc" if own else "SELECT x")
    assert reads == ({("c", "name"), ("p", "c_id"), ("c", "id"), ("c", "doc")} if own else None)
