import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayeslink.schema.corpus import Corpus, Question, data_home, read_corpus, write_corpus
from bayeslink.schema.graph import Column, Origin, RawKey, Table, build_graph
from bayeslink.schema.lines import Record
from bayeslink.schema.schema_lines import read_schema, schema_line

SCHEMA = {
    "db_id": "shop",
    "dialect": "sqlite",
    "tables": [
        {
            "name": "Orders",
            "natural_name": "orders",
            "description": None,
            "columns": [
                {
                    "name": "id",
                    "natural_name": None,
                    "type": "int",
                    "description": "the key",
                    "primary_key": True,
                },
                {
                    "name": "line",
                    "natural_name": None,
                    "type": "int",
                    "description": None,
                    "primary_key": True,
                },
            ],
        },
        {"name": "items", "columns": [{"name": "order_id"}, {"name": "order_line"}]},
    ],
    "foreign_keys": [
        {"table": "items", "column": "order_id", "ref_table": "orders", "ref_column": "id"},
        {"table": "items", "column": "order_line", "ref_table": "orders", "ref_column": "line"},
    ],
    "extra": 1,
}
QUESTION = {"id": "q1", "db_id": "shop", "question": "How many?", "split": "dev", "mapping": {}}


def save(folder: Path, schemas: list[object], questions: list[object]) -> Path:
    for stem, lines in (("schemas", schemas), ("questions", questions)):
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        (folder / f"{stem}.jsonl").write_text("\n".join(texts), encoding="utf-8")
    return folder


def without(line: dict, field: str) -> dict:
    return {name: value for name, value in line.items() if name != field}


def test_plain_files_are_read(tmp_path: Path):
    corpus = read_corpus(save(tmp_path, [SCHEMA], [QUESTION]), name="mine")
    assert corpus.name == "mine"
    assert corpus.questions == (Question("q1", "shop", "How many?", split="dev"),)
    graph = corpus.schemas["shop"]
    assert graph.table_names == ("Orders", "items")
    assert graph.tables[0].columns[0] == Column("id", "int", None, "the key", True)
    [key] = graph.foreign_keys
    assert (key.columns, key.ref_columns) == (("order_id", "order_line"), ("id", "line"))


def test_written_corpus_reads_back_and_has_the_same_bytes_twice(tmp_path: Path):
    corpus = read_corpus(save(tmp_path, [SCHEMA], [QUESTION]))
    first, second = tmp_path / "first", tmp_path / "second"
    write_corpus(corpus, first)
    write_corpus(corpus, second)
    again = read_corpus(first, name=corpus.name)
    assert again == corpus
    for file in ("schemas.jsonl.gz", "questions.jsonl.gz"):
        assert (first / file).read_bytes() == (second / file).read_bytes()
        assert (first / file).read_bytes()[4:8] == bytes(4)  # gzip's time stamp
    assert sorted(path.name for path in first.iterdir()) == ["questions.jsonl.gz", "schemas.jsonl.gz"]


def test_failed_write_leaves_the_old_file(tmp_path: Path):
    corpus = read_corpus(save(tmp_path, [SCHEMA], [QUESTION]))
    folder = tmp_path / "out"
    write_corpus(corpus, folder)
    before = (folder / "questions.jsonl.gz").read_bytes()
    broken = Corpus("c", corpus.schemas, (Question("q1", "shop", "half a pair: \ud800"),))
    with pytest.raises(UnicodeEncodeError):
        write_corpus(broken, folder)
    assert (folder / "questions.jsonl.gz").read_bytes() == before
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize(
    ("schemas", "questions", "message"),
    [
        ([without(SCHEMA, "db_id")], [QUESTION], r"schemas\.jsonl, line 1: field 'db_id' is missing"),
        ([without(SCHEMA, "tables")], [QUESTION], r"schemas\.jsonl, line 1: field 'tables' is missing"),
        ([without(SCHEMA, "foreign_keys")], [], r"line 1: field 'foreign_keys' is missing"),
        ([without(SCHEMA, "dialect")], [], r"line 1: field 'dialect' is missing"),
        ([SCHEMA | {"tables": []}], [QUESTION], r"line 1: database 'shop' has no tables"),
        ([SCHEMA | {"tables": {}}], [QUESTION], r"line 1: field 'tables' is \{\}; make it a list of objects"),
        ([SCHEMA | {"tables": SCHEMA["tables"] * 2}], [], r"line 1: tables of 'shop': 'Orders' repeats"),
        ([SCHEMA, SCHEMA], [QUESTION], r"line 2: database 'shop' appears twice"),
        (["{", SCHEMA], [QUESTION], r"schemas\.jsonl, line 1: not JSON"),
        (["[1]"], [QUESTION], r"line 1: \[1\] is not an object"),
        ([SCHEMA], [without(QUESTION, "id")], r"questions\.jsonl, line 1: field 'id' is missing"),
        ([SCHEMA], [QUESTION | {"id": 7}], r"line 1: field 'id' is 7; make it a non-empty string"),
        ([SCHEMA], [QUESTION | {"question": ""}], r"field 'question' is \"\"; make it a non-empty string"),
        ([SCHEMA], [QUESTION | {"query": 7}], r"field 'query' is 7; make it a string or null"),
        ([SCHEMA], [QUESTION, "", QUESTION], r"questions\.jsonl, line 3: question id 'q1' appears twice"),
        ([SCHEMA], [QUESTION | {"db_id": "SHOP"}], r"line 1: database 'SHOP' has no schema line"),
    ],
)
def test_broken_files_are_refused_with_their_place(tmp_path: Path, schemas, questions, message: str):
    with pytest.raises(ValueError, match=message):
        read_corpus(save(tmp_path, schemas, questions))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"origin": "rumour"}, "origin 'rumour' is unknown"),
        ({"column": None}, "field 'column' is null"),
        ({"key": True}, "field 'key' is true; make it an integer or null"),
    ],
)
def test_broken_keys_are_refused(change: dict, message: str):
    line = SCHEMA | {"foreign_keys": [SCHEMA["foreign_keys"][0] | change]}
    with pytest.raises(ValueError, match=message):
        read_schema(Record("here", line))


@pytest.mark.parametrize(
    ("change", "message"),
    [({"is_view": "yes"}, "true or false"), ({"key_columns": [1]}, "a list of strings")],
)
def test_broken_tables_are_refused(change: dict, message: str):
    line = SCHEMA | {"tables": [SCHEMA["tables"][0] | change]}
    with pytest.raises(ValueError, match=message):
        read_schema(Record("here", line))


def test_missing_double_and_unreadable_files_are_refused(tmp_path: Path):
    with pytest.raises(ValueError, match=r"schemas\.jsonl\.gz: no such file"):
        read_corpus(tmp_path)
    save(tmp_path, [SCHEMA], [QUESTION])
    whole = gzip.compress(json.dumps(SCHEMA).encode() * 50, mtime=0)
    packed = tmp_path / "schemas.jsonl.gz"
    packed.write_bytes(whole)
    with pytest.raises(ValueError, match="lies beside it"):
        read_corpus(tmp_path)
    (tmp_path / "schemas.jsonl").unlink()
    for content in (whole[:-12], whole[:40], b"no gzip at all", whole[:30] + b"\0" * 20 + whole[50:]):
        packed.write_bytes(content)
        with pytest.raises(ValueError, match=r"schemas\.jsonl\.gz, after line \d+: the gzip data is broken"):
            read_corpus(tmp_path)
    packed.write_bytes(gzip.compress(b'{"db_id": "\xff"}'))
    with pytest.raises(ValueError, match="not UTF-8"):
        read_corpus(tmp_path)


def test_plain_file_beside_the_new_one_is_refused(tmp_path: Path):
    corpus = read_corpus(save(tmp_path, [SCHEMA], [QUESTION]))
    with pytest.raises(ValueError, match="remove it first"):
        write_corpus(corpus, tmp_path)


def test_select_keeps_schemas_that_are_used_or_named(tmp_path: Path):
    questions = [QUESTION, QUESTION | {"id": "q2", "db_id": "bar", "split": "train"}]
    corpus = read_corpus(save(tmp_path, [SCHEMA, *({**SCHEMA, "db_id": db} for db in ("bar", "none"))], questions))
    train = corpus.select(split="train")
    assert [question.id for question in train.questions] == ["q2"]
    assert list(train.schemas) == ["bar"]
    assert list(corpus.select().schemas) == ["shop", "bar"]
    named = corpus.select(db_ids=["none", "shop"])
    assert (list(named.schemas), len(named.questions)) == (["shop", "none"], 1)
    assert corpus.select(split="train", db_ids=["shop"]).questions == ()
    assert read_corpus(tmp_path, name=corpus.name, split="train") == train
    with pytest.raises(ValueError, match=r"split='test' is not in corpus .* use one of \['dev', 'train'\]"):
        corpus.select(split="test")
    with pytest.raises(ValueError, match=r"db_ids=\['pub'\]"):
        corpus.select(db_ids=["pub", "bar"])


def test_corpus_checks_its_questions():
    graph = build_graph("d", [Table("t", (Column("a"),))])
    with pytest.raises(ValueError, match="'q' repeats"):
        Corpus("c", {"d": graph}, (Question("q", "d", "?"), Question("q", "d", "?")))
    with pytest.raises(ValueError, match="database 'e'"):
        Corpus("c", {"d": graph}, (Question("q", "e", "?"),))


def test_data_home_is_the_variable_and_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BAYESLINK_DATA", str(tmp_path))
    assert data_home() == tmp_path
    monkeypatch.setenv("BAYESLINK_DATA", str(tmp_path / "gone"))
    with pytest.raises(ValueError, match="set BAYESLINK_DATA"):
        data_home()


column_names = st.lists(st.sampled_from(["a", "b", "c d", "Ü"]), unique=True, min_size=1)
table_names = st.sampled_from(["t", "u.v", "order", "größe"])


@given(
    columns=st.dictionaries(table_names, column_names, min_size=1),
    schema_names=st.lists(st.sampled_from([None, "s"]), min_size=4, max_size=4),
    key_sizes=st.lists(st.integers(0, 2), min_size=4, max_size=4),
    views=st.lists(st.booleans(), min_size=4, max_size=4),
    origins=st.lists(st.sampled_from(list(Origin)), max_size=5),
    dialect=st.sampled_from(["sqlite", ""]),
    data=st.data(),
)
def test_schema_line_gives_the_graph_back(columns, schema_names, key_sizes, views, origins, dialect, data):
    tables = []
    for number, (name, found) in enumerate(columns.items()):
        key = tuple(data.draw(st.permutations(found))[: key_sizes[number]])
        members = tuple(Column(column, "int", primary_key=column in key) for column in found)
        schema_name = schema_names[number]
        tables.append(Table(name, members, schema_name, is_view=views[number], key_columns=key))
    keys = []
    for origin in origins:
        child, parent = (tables[data.draw(st.integers(0, len(tables) - 1))] for _ in range(2))
        sides = [data.draw(st.permutations(columns[table.name])) for table in (child, parent)]
        size = min(data.draw(st.integers(1, 2)), *map(len, sides))
        ends = [tuple(side[:size]) for side in sides]
        keys.append(RawKey(child.name, ends[0], parent.name, ends[1], child.schema, parent.schema or "", origin))
    graph = build_graph("d", tables, keys, dialect)
    assert not graph.dropped
    line = json.loads(json.dumps(schema_line("d", graph)))
    assert read_schema(Record("here", line)) == graph


@pytest.mark.parametrize(
    ("name", "databases", "questions", "tables", "keys", "composite"),
    [
        ("spider", 166, 8034, 876, 793, 0),
        ("bird", 11, 1534, 75, 102, 0),
        ("bird-minidev", 11, 500, 75, 102, 0),
        ("bird-train", 69, 9428, 522, 553, 44),
        ("beaver", 6, 209, 463, 241, 1),
        ("fiben", 1, 300, 152, 159, 0),
        ("spider-syn", 160, 8034, 818, 741, 0),
        ("spider-realistic", 19, 508, 77, 60, 0),
        pytest.param("spider2-lite", 162, 547, 8255, 171, 5, marks=pytest.mark.slow),
    ],
)
def test_benchmarks_load_whole(benchmark, name, databases, questions, tables, keys, composite):
    corpus = read_corpus(benchmark / name)
    found = list(corpus.schemas.values())
    assert len(found) == databases
    assert len(corpus.questions) == questions
    assert sum(graph.num_tables for graph in found) == tables
    assert [graph.dropped for graph in found if graph.dropped] == []
    all_keys = [key for graph in found for key in graph.foreign_keys]
    assert (len(all_keys), sum(len(key.columns) > 1 for key in all_keys)) == (keys, composite)
