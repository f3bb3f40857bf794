from dataclasses import replace

import numpy as np
import pytest
from conftest import QUESTIONS, harbour

from bayeslink.evidence import encoder
from bayeslink.evidence.channel import Channel, compute_evidence
from bayeslink.evidence.encoder import ENCODER_FILE, EncoderMatch, table_texts
from bayeslink.evidence.store import load_evidence
from bayeslink.schema.corpus import read_corpus
from bayeslink.schema.gold import resolve
from bayeslink.schema.graph import Column, SchemaGraph, Table

CHANNELS = (EncoderMatch(), EncoderMatch(described=True))


def test_texts_are_table_and_column_with_descriptions_where_asked():
    table = Table("crew", (Column("fullName", description="who it is"), Column("rank")), natural_name="crew members")
    assert table_texts(table, False) == ("crew members", ["crew members fullName", "crew members rank"])
    assert table_texts(table, True)[1] == ["crew members fullName who it is", "crew members rank"]


def test_both_are_channels_of_their_own_names(embeddings, graph):
    assert all(isinstance(channel, Channel) for channel in CHANNELS)
    evidence = compute_evidence(graph, QUESTIONS, CHANNELS)
    assert evidence.channels == ("encoder_columns", "encoder_descriptions")
    assert (evidence.values[4] == 0).all()
    assert CHANNELS[0].identity != CHANNELS[1].identity


def test_the_table_asked_for_comes_first(embeddings, graph):
    scores = EncoderMatch().score(QUESTIONS[:3], graph)
    assert scores[1].argmax() == 3
    assert scores[2].argmax() == 4


def test_a_schema_without_descriptions_scores_alike_in_both(embeddings, graph):
    one, other = (channel.score(QUESTIONS, graph) for channel in CHANNELS)
    np.testing.assert_array_equal(one, other)


def test_descriptions_are_read_where_asked(embeddings):
    columns = (Column("c1", description="wind speed in knots"), Column("c2", description="name of the harbour"))
    graph = SchemaGraph("coded", tuple(Table(f"t{n}", (column,)) for n, column in enumerate(columns)))
    asked = ["How fast was the wind?", "Which harbour is it?"]
    plain, described = (channel.score(asked, graph) for channel in CHANNELS)
    assert described.argmax(axis=1).tolist() == [0, 1]
    gap = described[[0, 1], [0, 1]] - described[[0, 1], [1, 0]]
    assert (gap > np.abs(plain[:, 0] - plain[:, 1]) + 0.1).all()


def test_scores_move_with_tables_and_do_not_depend_on_the_batch(embeddings):
    order = (3, 0, 4, 2, 1)
    plain = EncoderMatch().score(QUESTIONS, harbour())
    moved = EncoderMatch().score(QUESTIONS, harbour(order))
    np.testing.assert_allclose(moved, plain[:, order], atol=1e-6)
    single = np.concatenate([EncoderMatch().score([question], harbour()) for question in QUESTIONS])
    np.testing.assert_allclose(single, plain, atol=1e-5)


def test_the_score_is_its_definition(embeddings, graph):
    from torch import inference_mode

    model, asked = encoder._encoder(), QUESTIONS[0]
    texts = [table_texts(table, False) for table in graph.tables]
    with inference_mode():
        u = model.questions([asked])[0].numpy().astype(float)
        a = 1 / (1 + np.exp(-float(model.mix)))
        b = np.exp(float(model.sharpness))
        expected = []
        for name, columns in texts:
            cosines = [float(u @ vector) for vector in model.texts([(column, []) for column in columns])[1].numpy()]
            own = float(u @ model.texts([(name, [])])[1].numpy()[0])
            expected.append(a * np.log(np.sum(np.exp(b * np.array(cosines)))) / b + (1 - a) * own)
    np.testing.assert_allclose(EncoderMatch().score([asked], graph)[0], expected, atol=1e-5)


def test_a_difference_gives_the_encoder_back_up_to_its_rounding(embeddings):
    import torch

    from bayeslink.evidence.encoder_model import BiEncoder, ternary_difference, with_difference

    torch.manual_seed(0)
    tuned, plain = BiEncoder(), BiEncoder().state_dict()
    with torch.no_grad():
        for name, parameter in tuned.named_parameters():
            if "embeddings" not in name or parameter.ndim < 2:
                parameter += 0.01 * torch.randn(parameter.shape)
    arrays = ternary_difference(tuned)
    again = with_difference(arrays).state_dict()
    for name, value in tuned.state_dict().items():
        difference, kept = value - plain[name], again[name] - plain[name]
        if value.ndim < 2 or "embeddings" in name:
            assert torch.allclose(kept, difference, atol=1e-4), name
            continue
        steps = 1.2 * difference.std(dim=1, keepdim=True)
        expected = torch.sign(difference) * steps * (difference.abs() > steps / 2)
        near = ((difference.abs() / steps - 0.5).abs() < 1e-3).float().mean()
        assert ((kept - expected).abs() > 1e-4).float().mean() <= near, name
    with pytest.raises(ValueError, match="not those of an encoder's difference"):
        with_difference({name: value for name, value in arrays.items() if not name.startswith("mix")})
    with pytest.raises(ValueError, match="mix has shape"):
        with_difference(arrays | {"mix": np.zeros(2)})


@pytest.mark.parametrize("content", [b"", b"nonsense", None])
def test_a_broken_file_is_refused(embeddings, graph, tmp_path, monkeypatch, content):
    monkeypatch.setattr(encoder, "ENCODER_FILE", tmp_path / "encoder.npz")
    encoder._encoder.cache_clear()
    if content is not None:
        (tmp_path / "encoder.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"encoder .*encoder\.npz cannot be read .*install the package again"):
        EncoderMatch().score(QUESTIONS, graph)
    encoder._encoder.cache_clear()


def test_a_schema_without_columns_is_read_by_its_names(embeddings):
    graph = SchemaGraph("bare", (Table("ships", ()), Table("weather", ())))
    assert EncoderMatch().score(["Which ships?"], graph)[0].argmax() == 0


def live_and_stored(benchmark, folder: str, split: str | None, name: str, db_id: str) -> tuple:
    """Scores of the first questions of a database by the package's encoder, and the stored ones."""
    corpus = read_corpus(benchmark / folder, split=split)
    own = tuple(question for question in corpus.questions if question.db_id == db_id)
    gold = resolve(replace(corpus, questions=own)).gold
    stored = load_evidence(name, ("encoder_columns", "encoder_descriptions"))
    item = next(item for item in stored if item.db_id == db_id)
    asked = [question.text for question in own if question.id in gold][:20]
    return compute_evidence(corpus.schemas[db_id], asked, CHANNELS).values, item.values[:20]


@pytest.mark.parametrize(
    ("folder", "split", "name", "db_id"),
    [("spider", "dev", "spider-dev", "concert_singer"), ("bird", None, "bird-dev", "debit_card_specializing")],
)
def test_stored_scores_of_new_databases_are_the_packages_own(embeddings, benchmark, folder, split, name, db_id):
    live, stored = live_and_stored(benchmark, folder, split, name, db_id)
    np.testing.assert_allclose(live, stored, atol=1e-4)
    assert folder == "spider" or np.abs(live[..., 0] - live[..., 1]).max() > 0.01  # BIRD has descriptions


def test_stored_scores_of_training_databases_are_not_the_packages_own(embeddings, benchmark):
    """They come from an encoder that was trained without the database's half."""
    live, stored = live_and_stored(benchmark, "spider", "train", "spider-train", "farm")
    assert np.abs(live - stored).max() > 0.02


def test_the_file_is_small():
    assert ENCODER_FILE.stat().st_size < 4_000_000
