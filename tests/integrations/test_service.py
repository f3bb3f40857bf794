"""What an agent asks: the service itself, over MCP in memory and over standard input, and the two retrievers."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from bayeslink.grounding.policy import Policy
from bayeslink.integrations.service import LinkService
from bayeslink.linker import SchemaLinker

QUESTION = "Which customers bought which products?"
SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE products (id INTEGER PRIMARY KEY, title TEXT, cost REAL);
CREATE TABLE orders (customer_id INTEGER REFERENCES customers (id), product_id INTEGER REFERENCES products (id));
CREATE TABLE salaries (id INTEGER PRIMARY KEY, amount REAL);
"""
CLERK = Policy("clerk", {("", "customers"): None, ("", "orders"): None, ("", "products"): frozenset({"id", "title"})})


@pytest.fixture
def shop(tmp_path) -> Path:
    path = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SHOP)
    return path


@pytest.fixture
def service(shop) -> LinkService:
    return LinkService(str(shop), CLERK, channels="lexical")


def test_link_schema_is_the_links_own_answer(shop):
    found = LinkService(str(shop), channels="lexical").link_schema(QUESTION, cover=0.9)
    link = SchemaLinker.from_database(str(shop), channels="lexical").link(QUESTION, cover=0.9)
    assert tuple(found["cover"]["tables"]) == link.tables
    assert found["ddl"] == link.ddl().text
    assert found["partial_view"] is False
    shown = {row["table"]: row["probability"] for row in found["tables"]}
    assert shown == {n: p for n, p in zip(link.graph.table_names, link.probabilities, strict=True) if n in shown}
    assert set(link.tables) <= shown.keys()
    json.dumps(found, allow_nan=False)


def test_nothing_withheld_is_named(service):
    told = [service.link_schema(QUESTION), service.ask(QUESTION), service.explain(QUESTION, "products")]
    text = json.dumps(told)
    assert "salaries" not in text
    assert "cost" not in text
    assert told[0]["partial_view"] is True
    for hidden in ("salaries", "nothing"):
        with pytest.raises(ValueError, match=f"table={hidden!r}"):
            service.explain(QUESTION, hidden)


def test_explain_adds_up_the_parts(service):
    found = service.explain(QUESTION, "products")
    assert set(found["channels"]) == {"token_overlap", "bm25", "hashed_cosine"}
    assert 0 < found["probability"] < 1
    assert "joined to" in found["why"]


def test_ask_gives_the_mode_after_either_answer(service, shop):
    found = service.ask(QUESTION, max_risk=0.01)
    assert found["ask_first"]
    assert "> 0.01" in found["reason"]
    assert found["table"] in found["if_yes"]
    assert found["table"] not in found["if_no"]
    assert found["right_after"] > found["right_before"]


@pytest.mark.parametrize(
    ("sql", "allowed"),
    [
        ("SELECT name FROM customers", True),
        ("SELECT title FROM products", True),
        ("SELECT cost FROM products", False),
        ("SELECT * FROM salaries", False),
        ("DROP TABLE customers", False),
        ("SELECT name FROM customers; SELECT 1", False),
        ("SELEC", False),
    ],
)
def test_check_sql_follows_the_policy(service, sql, allowed):
    found = service.check_sql(sql)
    assert found["allowed"] is allowed
    assert (found["reason"] is None) is allowed
    assert "salaries" not in (found["reason"] or "") or "salaries" in sql


def test_a_schema_that_changes_is_noticed(shop):
    service = LinkService(str(shop), channels="lexical", max_age=0.0)
    assert "refunds" not in service.link_schema("Which refunds were paid?")["cover"]["tables"]
    first = service._linker
    service.link_schema(QUESTION)
    assert service._linker is first
    with closing(sqlite3.connect(shop)) as connection:
        connection.execute("CREATE TABLE refunds (id INTEGER PRIMARY KEY, paid TEXT)")
    assert "refunds" in service.link_schema("Which refunds were paid?")["cover"]["tables"]
    patient = LinkService(str(shop), channels="lexical", max_age=1e9)
    patient.link_schema(QUESTION)
    with closing(sqlite3.connect(shop)) as connection:
        connection.execute("CREATE TABLE claims (id INTEGER PRIMARY KEY)")
    assert "claims" not in patient.link_schema("Which claims?")["cover"]["tables"]


def test_tools_over_mcp(service):
    pytest.importorskip("mcp", reason="extra `mcp`")
    from mcp import Client

    from bayeslink.integrations.mcp_server import build_server

    async def talk() -> None:
        async with Client(build_server(service)) as client:
            tools = await client.list_tools()
            assert {tool.name for tool in tools.tools} == {"link_schema", "explain", "ask", "check_sql"}
            found = await client.call_tool("link_schema", {"question": QUESTION})
            assert json.loads(found.content[0].text)["cover"]["tables"]
            # Eight at once, as eight agents would.
            async with anyio.create_task_group() as group:
                for number in range(8):
                    group.start_soon(client.call_tool, "ask", {"question": f"{QUESTION} {number}"})
            wrong = (
                ("explain", {"question": QUESTION, "table": "salaries"}, "table='salaries'"),
                ("link_schema", {"question": ""}, "no content word"),
                ("link_schema", {"question": QUESTION, "cover": 7.0}, "cover=7.0"),
            )
            for tool, values, said in wrong:
                refused = await client.call_tool(tool, values)
                assert refused.is_error
                assert said in refused.content[0].text
                assert "Traceback" not in refused.content[0].text

    anyio.run(talk)


def test_the_command_serves_over_standard_input(shop, tmp_path):
    pytest.importorskip("mcp", reason="extra `mcp`")
    from mcp import Client, StdioServerParameters

    async def talk() -> None:
        command = ["-m", "bayeslink", "serve", str(shop), "--channels", "lexical"]
        with anyio.fail_after(120):
            async with Client(StdioServerParameters(command=sys.executable, args=command)) as client:
                found = await client.call_tool("check_sql", {"sql": "SELECT amount FROM salaries"})
                assert json.loads(found.content[0].text) == {"allowed": True, "reason": None}

    anyio.run(talk)


def test_langchain_documents_are_the_covers_tables(shop):
    pytest.importorskip("langchain_core", reason="extra `langchain`")
    from bayeslink.integrations.langchain import SchemaRetriever

    linker = SchemaLinker.from_database(str(shop), channels="lexical")
    found = SchemaRetriever(linker=linker, cover=0.9).invoke(QUESTION)
    assert {item.metadata["table"] for item in found} == set(linker.link(QUESTION, cover=0.9).tables)
    chances = [item.metadata["probability"] for item in found]
    assert chances == sorted(chances, reverse=True)
    assert all(item.page_content.startswith("CREATE TABLE") for item in found)


def test_llama_index_nodes_are_the_covers_tables(shop):
    pytest.importorskip("llama_index.core", reason="extra `llama-index`")
    from bayeslink.integrations.llama_index import SchemaRetriever

    linker = SchemaLinker.from_database(str(shop), channels="lexical")
    found = SchemaRetriever(linker, cover=0.9).retrieve(QUESTION)
    assert {item.node.metadata["table"] for item in found} == set(linker.link(QUESTION, cover=0.9).tables)
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)
    assert all(item.node.get_content().startswith("CREATE TABLE") for item in found)
