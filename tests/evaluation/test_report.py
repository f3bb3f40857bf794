"""The evaluation document: counts, twins, intervals, refusals; and posteriors ready to be saved."""

from dataclasses import replace

import numpy as np
import pytest

from bayeslink.evaluation import held_out, report, schemes
from bayeslink.evaluation.comparison import clustered_bootstrap
from bayeslink.evaluation.questions import stored_questions
from bayeslink.evaluation.report import NUM_RESAMPLES, evaluate, fit_posteriors
from bayeslink.evaluation.schemes import TABLE_VARIANTS, FitSettings
from bayeslink.evidence.store import load_evidence, load_fingerprints, load_twins
from bayeslink.inference.posterior import load_posteriors, shipped_path
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Variant

# The CONTRACT.md keys of the document, and of each variant.
DOCUMENT = {"n_questions", "n_unresolved", "n_databases", "n_twins_left_out", "channels", "support", "variants"} | {
    "n_without_query",
    "n_twins_left_out_of_fit",
}
SETTINGS = FitSettings(num_draws=10)


@pytest.fixture
def four(evidence, questions_of):
    return questions_of([evidence(name, seed=seed) for seed, name in enumerate("abcd")])


@pytest.fixture
def table(posterior):
    """A posterior for each row of the table."""
    return {variant: posterior(variant) for variant in TABLE_VARIANTS}


def test_document_of_a_transfer(four, table):
    found = evaluate(replace(four, num_without_query=7), "transfer", table)
    assert found.keys() >= DOCUMENT
    assert found["n_without_query"] == 7
    assert (found["n_questions"], found["n_databases"], found["n_unresolved"]) == (48, 4, 3)
    assert (found["n_twins_left_out"], found["n_twins_left_out_of_fit"]) == (0, 0)
    assert (found["channels"], found["support"], found["data"]) == (["one", "two"], "all", "toy")
    assert list(found["variants"]) == [variant.value for variant in TABLE_VARIANTS]
    assert found["forms"] == ["value"]


def test_forms_are_stated_and_shared(four):
    asked = SETTINGS._replace(forms=("value", "below_best"))
    (posterior,) = fit_posteriors(four, [Variant.INDEPENDENT], settings=asked)
    assert posterior.forms == ("value", "below_best")
    given = {Variant.INDEPENDENT: posterior}
    found = evaluate(four, "transfer", given, keep_twins=True)
    assert found["forms"] == ["value", "below_best"]
    (plain,) = fit_posteriors(four, [Variant.POOLED], settings=SETTINGS)
    with pytest.raises(ValueError, match=r"variants differ in forms \(independent value\+below_best, pooled value\)"):
        evaluate(four, "transfer", {**given, Variant.POOLED: plain}, keep_twins=True)
    found = evaluate(four, "in-sample", variants=[Variant.INDEPENDENT], settings=asked)
    assert found["forms"] == ["value", "below_best"]


def test_shift_interval_resamples_the_ratio_over_pairs(evidence, questions_of, posterior):
    items = [evidence("a", num_tables=2), evidence("b", num_tables=4, seed=1)]
    found = evaluate(questions_of(items), "transfer", {Variant.POOLED: posterior(Variant.POOLED)})
    row = found["variants"]["pooled"]
    _, predictions = next(iter(schemes.transfer(items, {Variant.POOLED: posterior(Variant.POOLED)})))
    sums = [
        (float((p - y).sum()), len(y)) for item in predictions for p, y in zip(item.marginals, item.gold, strict=True)
    ]
    assert sum(s for s, _ in sums) / sum(n for _, n in sums) == pytest.approx(row["mean_shift"])
    again = clustered_bootstrap(
        np.array(sums),
        ["a"] * 12 + ["b"] * 12,
        np.concatenate([item.group for item in items]),
        NUM_RESAMPLES,
        np.random.default_rng(0),
        lambda drawn: drawn[:, 0].sum() / drawn[:, 1].sum(),
    )
    assert row["mean_shift_interval"] == pytest.approx([again.lower, again.upper])
    assert row["mean_shift_interval"][0] < row["mean_shift"] < row["mean_shift_interval"][1]


def test_hierarchical_is_compared_with_its_two_comparators(four, table):
    rows = evaluate(four, "transfer", table)["variants"]
    gains = rows["hierarchical"]["joint_log_score_difference"]
    assert list(gains) == ["independent_hierarchical", "pooled", "pooled_coupling"]
    for other, gain in gains.items():
        expected = rows["hierarchical"]["joint_log_score"] - rows[other]["joint_log_score"]
        assert gain["estimate"] == pytest.approx(expected, abs=1e-12)
        assert gain["lower"] < gain["estimate"] < gain["upper"]
    assert all("joint_log_score_difference" not in row for name, row in rows.items() if name != "hierarchical")
    alone = evaluate(four, "transfer", table, [Variant.HIERARCHICAL, Variant.POOLED_COUPLING])["variants"]
    assert list(alone["hierarchical"]["joint_log_score_difference"]) == ["pooled_coupling"]


def test_transfer_leaves_out_training_databases_their_twins_and_copies(four, table, posterior):
    # a by its key alone, b by more than half of its fingerprint, c by being a copy too small for a twin.
    small = np.array([7, 8], dtype=np.uint64)
    shared = replace(four, fingerprints=four.fingerprints | {("toy", "c"): small})
    prints = (np.array([1], dtype=np.uint64), four.fingerprints["toy", "b"][:18], small)
    trained = posterior(
        databases=(("toy", "a"), ("other", "b2"), ("other", "c2")),
        fingerprints=prints,
        info={"num_twins_left_out": 2},
    )
    found = evaluate(shared, "transfer", {Variant.HIERARCHICAL: trained})
    assert (found["n_databases"], found["n_questions"], found["n_twins_left_out"]) == (1, 12, 3)
    assert found["n_twins_left_out_of_fit"] == 2
    kept = evaluate(shared, "transfer", {Variant.HIERARCHICAL: trained}, keep_twins=True)
    assert (kept["n_databases"], kept["n_twins_left_out"], kept["n_twins_left_out_of_fit"]) == (4, 0, 2)


def test_an_updated_posterior_still_knows_what_its_population_learnt_from(four, posterior):
    """The first by its key, the second by a fingerprint, the third by the update."""
    prints = (np.array([1], dtype=np.uint64), four.fingerprints["toy", "b"])
    updated = posterior(
        databases=(("toy", "c"),), earlier=(("toy", "a"), ("other", "b2")), fingerprints=prints, info={}
    )
    found = evaluate(four, "transfer", {Variant.HIERARCHICAL: updated})
    assert (found["n_databases"], found["n_twins_left_out"]) == (1, 3)


def test_scores_of_each_question_are_given_when_asked_for(four, table):
    found = evaluate(four, "transfer", table, per_question=True)
    assert len(found["questions"]) == found["n_questions"]
    assert found["questions"][0][0] == "toy/a"
    for row in found["variants"].values():
        assert len(row["log_scores"]) == found["n_questions"]
        assert np.mean(row["log_scores"]) == pytest.approx(row["joint_log_score"])
    assert "questions" not in evaluate(four, "transfer", table)


def test_training_databases_are_known_without_fingerprints_but_not_their_twins(four, posterior, caplog):
    trained = {Variant.HIERARCHICAL: posterior(databases=(("toy", "a"), ("toy", "b")))}
    assert evaluate(four, "transfer", trained)["n_databases"] == 2
    [record] = caplog.records
    assert (record.levelname, record.name) == ("WARNING", "bayeslink.evaluation.report")
    assert "2 of its 2 training databases have no fingerprint, so twins of them" in record.getMessage()
    caplog.clear()
    prints = tuple(four.fingerprints["toy", name] for name in "ab")
    evaluate(
        four, "transfer", {Variant.HIERARCHICAL: posterior(databases=(("x", "a"), ("x", "b")), fingerprints=prints)}
    )
    assert not caplog.records


def test_posteriors_of_one_document_share_support_and_channels(four, posterior):
    hierarchical, pooled = posterior(), posterior(Variant.POOLED)
    narrow = replace(pooled, support=Support.NON_EMPTY)
    with pytest.raises(ValueError, match=r"differ in support \(hierarchical all, pooled non-empty\)"):
        evaluate(four, "transfer", {Variant.HIERARCHICAL: hierarchical, Variant.POOLED: narrow})
    other = replace(pooled, standardisation=replace(pooled.standardisation, channels=("one", "three")))
    with pytest.raises(ValueError, match=r"differ in channels \(hierarchical one\+two, pooled one\+three\)"):
        evaluate(four, "transfer", {Variant.HIERARCHICAL: hierarchical, Variant.POOLED: other})


def test_leave_one_out_counts_the_twins_that_no_fit_saw(four, monkeypatch):
    trained = []
    genuine = held_out.fit_packed
    monkeypatch.setattr(
        held_out,
        "fit_packed",
        lambda batch, keys, *rest, **more: trained.append(keys) or genuine(batch, keys, *rest, **more),
    )
    twins = {("toy", "a"): (("toy", "b"), ("bird", "z")), ("toy", "b"): (("toy", "a"),)}
    paired = replace(four, twins=twins)
    found = evaluate(paired, "leave-one-database-out", variants=[Variant.INDEPENDENT], settings=SETTINGS)
    assert (found["n_twins_left_out"], found["n_databases"], found["n_questions"]) == (2, 4, 48)
    assert [len(keys) for keys in trained] == [2, 2, 3, 3]
    trained.clear()
    kept = evaluate(
        paired, "leave-one-database-out", variants=[Variant.INDEPENDENT], settings=SETTINGS, keep_twins=True
    )
    assert kept["n_twins_left_out"] == 0
    assert [len(keys) for keys in trained] == [3, 3, 3, 3]


def test_a_database_left_out_for_two_others_counts_once(four):
    twins = {("toy", "a"): (("toy", "b"), ("toy", "c")), ("toy", "b"): (("toy", "a"),), ("toy", "c"): (("toy", "a"),)}
    paired = replace(four, twins=twins)
    found = evaluate(paired, "leave-one-database-out", variants=[Variant.INDEPENDENT], settings=SETTINGS)
    assert (found["n_twins_left_out"], found["n_twins_left_out_of_fit"]) == (3, 0)


def test_databases_too_large_to_list_are_scored_as_well(evidence, questions_of, table):
    found = evaluate(questions_of([evidence("a"), evidence("big", num_tables=16)]), "transfer", table)
    assert (found["n_databases"], found["n_questions"]) == (2, 24)
    assert np.isfinite(found["variants"]["hierarchical"]["joint_log_score"])


def test_support_is_that_of_the_fit(four, posterior):
    narrow = {Variant.POOLED: replace(posterior(Variant.POOLED), support=Support.NON_EMPTY)}
    assert evaluate(four, "transfer", narrow)["support"] == "non-empty"


def test_empty_cases_are_refused(questions_of, four, posterior):
    with pytest.raises(ValueError, match="no question has resolved gold"):
        evaluate(questions_of([]), "in-sample")
    known = posterior(databases=tuple(item.key for item in four.evidences))
    with pytest.raises(ValueError, match="no database is left to score, all are training databases or their twins"):
        evaluate(four, "transfer", {Variant.HIERARCHICAL: known})


def test_what_cannot_be_had_is_refused_before_anything_is_fitted(four, posterior, monkeypatch):
    monkeypatch.setattr(schemes, "fit_packed", lambda *a, **k: pytest.fail("fitted"))
    with pytest.raises(ValueError, match="scheme='holdout'"):
        evaluate(four, "holdout")
    with pytest.raises(ValueError, match="give posteriors"):
        evaluate(four, "transfer")
    with pytest.raises(ValueError, match="variant=pooled: the posterior holds hierarchical only"):
        evaluate(four, "transfer", {Variant.HIERARCHICAL: posterior()}, [Variant.POOLED])
    with pytest.raises(ValueError, match="unpooled says nothing"):
        evaluate(four, "leave-one-database-out", variants=[Variant.UNPOOLED])


def test_by_default_transfer_has_the_rows_of_its_posterior(four, posterior):
    found = evaluate(four, "transfer", {Variant.HIERARCHICAL: posterior()})
    assert list(found["variants"]) == ["hierarchical"]


def test_fitted_posteriors_say_what_they_were_fitted_on(evidence, questions_of):
    items = [evidence(name, seed=seed) for seed, name in enumerate("abcd")]
    items.append(evidence("flight_2", seed=4, dataset="spider"))  # itself in spider-dev
    items.append(evidence("big", num_tables=6, seed=5))
    asked = questions_of(items)
    (found,) = fit_posteriors(asked, [Variant.INDEPENDENT], ["spider-dev"], SETTINGS, max_tables=5)
    assert found.databases == tuple(("toy", name) for name in "abcd")
    assert found.info["num_twins_left_out"] == 1
    assert found.info["num_too_large"] == 1
    assert found.info["num_unresolved"] == 3
    assert found.info["num_questions"] == 48
    for key, print_ in zip(found.databases, found.fingerprints, strict=True):
        np.testing.assert_array_equal(print_, asked.fingerprints[key])
    assert found.provenance["data"] == "toy"
    assert found.provenance["without twins of"] == "spider-dev"
    with pytest.raises(ValueError, match="no database is left to fit on"):
        fit_posteriors(asked, [Variant.INDEPENDENT], max_tables=1)


def test_twins_of_the_held_out_sets_are_left_out_of_the_fit(evidence, questions_of):
    held = {item.key for item in load_evidence("bird-dev")}
    twin = next(twin for key in sorted(held) for twin in load_twins()[key] if twin[0] == "spider")
    items = [evidence("a"), evidence("b", seed=1), evidence(twin[1], seed=2, dataset="spider")]
    (found,) = fit_posteriors(questions_of(items), [Variant.INDEPENDENT], ["bird-dev"], SETTINGS)
    assert found.databases == (("toy", "a"), ("toy", "b"))


def test_a_renamed_twin_or_copy_of_a_held_out_database_is_left_out_of_the_fit(evidence, questions_of):
    """A corpus of one's own never has the keys of the stored sets; only its fingerprints tell."""
    stored = load_fingerprints()
    held = [item.key for item in load_evidence("bird-dev")]
    copy = min((stored[key] for key in held), key=len)
    twin = max((stored[key] for key in held), key=len)
    twin = twin[: int(0.6 * len(twin))]
    items = [evidence(name, seed=seed) for seed, name in enumerate(("a", "copy", "b", "twin"))]
    asked = questions_of(items, prints={("toy", "copy"): copy, ("toy", "twin"): twin})
    (found,) = fit_posteriors(asked, [Variant.INDEPENDENT], ["bird-dev"], SETTINGS)
    assert found.databases == (("toy", "a"), ("toy", "b"))
    assert found.info["num_twins_left_out"] == 2
    (whole,) = fit_posteriors(asked, [Variant.INDEPENDENT], settings=SETTINGS)
    assert len(whole.databases) == 4


def test_shipped_posterior_on_stored_questions():
    """BIRD dev under transfer: counts, no leak, and a coupling that lifts the gold subset's score."""
    posteriors = load_posteriors(shipped_path("lexical"))
    channels = next(iter(posteriors.values())).channels
    dev = {item.key for name in ("spider-dev", "bird-dev") for item in load_evidence(name)}
    barred = dev | {twin for key in dev for twin in load_twins().get(key, ())}
    for item in posteriors.values():
        assert not barred & set(item.databases)
        assert len(item.fingerprints) == len(item.databases)
    wanted = [Variant.INDEPENDENT, Variant.POOLED]
    asked = stored_questions(["bird-dev"], channels)
    # The larger ones take most of the time.
    small = asked.without(item.key for item in asked.evidences if item.num_tables > 8)
    found = evaluate(small, "transfer", posteriors, wanted)
    counted = sum(item.num_questions for item in small.evidences)
    assert (found["n_questions"], found["n_databases"]) == (counted, len(small.evidences))
    assert counted > 800
    rows = found["variants"]
    assert rows["pooled"]["joint_log_score"] > rows["independent"]["joint_log_score"]
    for row in rows.values():
        assert 0.7 < row["map"] < 1
        assert row["ece"] < 0.1
        assert row["cover"]["0.95"]["coverage"] > 0.9


def test_a_transfer_row_is_the_same_in_every_run(four, table):
    assert evaluate(four, "transfer", table) == evaluate(four, "transfer", table)


def test_report_names_only_what_the_scheme_left_out(four, table):
    # A database counts once, whether or not several posteriors know it.
    known = {variant: replace(item, databases=(("toy", "a"),)) for variant, item in table.items()}
    assert report.evaluate(four, "transfer", known)["n_twins_left_out"] == 1
