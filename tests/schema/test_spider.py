import json
from pathlib import Path

import pytest

from bayeslink.schema.corpus import Question, read_corpus, write_corpus
from bayeslink.schema.graph import Column
from bayeslink.schema.spider import read_bird, read_spider

ENTRY = {
    "db_id": "zoo",
    "table_names_original": ["Cage", "Animal", "Keeper"],
    "table_names": ["cage", "animal", "zoo keeper"],
    "column_names_original": [
        [-1, "*"],
        [0, "House"],
        [0, "Nr"],
        [1, "ID"],
        [1, "cage_house"],
        [1, "cage_nr"],
        [1, "mother"],
        [2, "likes"],
    ],
    "column_names": [
        [-1, "*"],
        [0, "house"],
        [0, "number"],
        [1, "id"],
        [1, "cage house"],
        [1, "cage number"],
        [1, "mother"],
        [2, "likes"],
    ],
    "column_types": ["text", "text", "number", "number", "text", "number", "number", "number"],
    "primary_keys": [[2, 1], 3],
    "foreign_keys": [[4, 1], [5, 2], [6, 3], [7, 3]],
}


def save(folder: Path, **files: object) -> Path:
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def spider(folder: Path) -> Path:
    question = {
        "db_id": "zoo",
        "query": "SELECT count(*) FROM Animal",
        "question": "How many?",
        "query_toks": [],
    }
    return save(folder, tables=[ENTRY], train_spider=[question] * 2, train_others=[question], dev=[question])


def bird(folder: Path) -> Path:
    question = {"db_id": "zoo", "SQL": "SELECT 1 FROM Cage", "question": "Is there?", "evidence": ""}
    dev = question | {"question_id": 7, "difficulty": "simple", "evidence": "cage refers to Cage"}
    return save(folder, dev_tables=[ENTRY], dev=[dev], train=[question])


def test_spider_schema(tmp_path: Path):
    graph = read_spider(spider(tmp_path)).schemas["zoo"]
    assert graph.table_names == ("Cage", "Animal", "Keeper")
    assert graph.tables[2].natural_name == "zoo keeper"
    assert graph.tables[0].columns == (
        Column("House", "text", "house", None, True),
        Column("Nr", "number", "number", None, True),
    )
    assert graph.tables[0].primary_key == ("Nr", "House")
    assert [column.name for column in graph.tables[2].columns] == ["likes"]
    assert graph.tables[2].primary_key == ()
    assert [(key.table, key.columns, key.ref_table, key.ref_columns) for key in graph.foreign_keys] == [
        (1, ("cage_house", "cage_nr"), 0, ("House", "Nr")),
        (1, ("mother",), 1, ("ID",)),
        (2, ("likes",), 1, ("ID",)),
    ]
    assert graph.edge_array.tolist() == [[0, 1], [1, 2]]


def test_spider_questions_and_splits(tmp_path: Path):
    corpus = read_spider(spider(tmp_path))
    assert corpus.name == "spider"
    assert [(question.id, question.split) for question in corpus.questions] == [
        ("spider-train-0", "train"),
        ("spider-train-1", "train"),
        ("spider-train_others-0", "train_others"),
        ("spider-dev-0", "dev"),
    ]
    assert corpus.questions[0].query == "SELECT count(*) FROM Animal"
    (tmp_path / "train_others.json").unlink()
    assert len(read_spider(tmp_path).questions) == 3


def test_bird_questions(tmp_path: Path):
    corpus = read_bird(bird(tmp_path))
    assert corpus.questions == (
        Question("bird-train-0", "zoo", "Is there?", None, "SELECT 1 FROM Cage", "train", None),
        Question("bird-dev-7", "zoo", "Is there?", "cage refers to Cage", "SELECT 1 FROM Cage", "dev", "simple"),
    )


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8", "latin-1"])
def test_bird_descriptions_in_any_of_their_encodings(tmp_path: Path, encoding: str):
    folder = bird(tmp_path) / "dev_databases" / "zoo" / "database_description"
    folder.mkdir(parents=True)
    text = (
        "original_column_name,column_name,column_description,data_format,value_description\r\n"
        'HOUSE ,Gehäuse,"where it\r\n stands",text,"A: Affenhaus, B: Bärenhaus"\r\n'
        "nr,,,integer,\r\n"
        "unknown,x,y,text,z\r\n"
    )
    (folder / "cage.csv").write_bytes(text.encode(encoding))
    graph = read_bird(tmp_path).schemas["zoo"]
    assert graph.tables[0].columns == (
        Column("House", "text", "Gehäuse", "where it stands; A: Affenhaus, B: Bärenhaus", True),
        Column("Nr", "number", "number", None, True),
    )
    assert graph.tables[1].columns[0] == Column("ID", "number", "id", None, True)


def test_what_is_read_can_be_written(tmp_path: Path):
    corpus = read_bird(bird(tmp_path))
    write_corpus(corpus, tmp_path / "lines")
    assert read_corpus(tmp_path / "lines", name="bird") == corpus


def test_missing_files_are_refused(tmp_path: Path):
    for read, files in ((read_spider, "tables.json"), (read_bird, "dev_tables.json")):
        with pytest.raises(ValueError, match=rf"holds none of .*{files}"):
            read(tmp_path)
    save(tmp_path, tables=[ENTRY])
    with pytest.raises(ValueError, match=r"holds none of .*dev\.json"):
        read_spider(tmp_path)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"db_id": "zoo"}, r"tables\.json: not a list of objects"),
        ([ENTRY, ENTRY], r"tables\.json, entry 1: database 'zoo' appears twice"),
        ([{**ENTRY, "column_types": ["text"]}], r"entry 0: not in the tables\.json layout"),
        ([{**ENTRY, "foreign_keys": [[4, 99]]}], r"entry 0: not in the tables\.json layout"),
        ([{"db_id": "zoo"}], r"entry 0: not in the tables\.json layout \(KeyError"),
        (
            [{**ENTRY, "table_names_original": ["Cage", "cage", "Keeper"]}],
            "entry 0: tables of 'zoo': 'cage' repeats",
        ),
        (
            [{name: [] if isinstance(value, list) else value for name, value in ENTRY.items()}],
            "entry 0: the database has no tables",
        ),
    ],
)
def test_broken_schemas_are_refused(tmp_path: Path, entries: object, message: str):
    with pytest.raises(ValueError, match=message):
        read_spider(save(spider(tmp_path), tables=entries))


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"db_id": "zoo", "question": "?"}, r"dev\.json, entry 0: field 'query' is missing"),
        ({"db_id": "zoo", "query": "SELECT 1"}, r"dev\.json, entry 0: field 'question' is missing"),
        ({"db_id": "park", "question": "?", "query": "SELECT 1"}, "database 'park', which has no schema"),
    ],
)
def test_broken_questions_are_refused(tmp_path: Path, question: dict, message: str):
    with pytest.raises(ValueError, match=message):
        read_spider(save(spider(tmp_path), dev=[question]))


def test_broken_json_is_refused(tmp_path: Path):
    (spider(tmp_path) / "dev.json").write_text("[{")
    with pytest.raises(ValueError, match=r"dev\.json: not JSON"):
        read_spider(tmp_path)
