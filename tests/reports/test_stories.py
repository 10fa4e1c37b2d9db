from dataclasses import replace

from cndpm.reports.collection import collect
from cndpm.reports.groups import compare
from cndpm.reports.run import Run
from cndpm.reports.stories import comparison_story, progress_words, run_facts, run_story, title_of


def test_a_newcomer_reads_what_was_streamed_how_well_and_with_how_many_experts(records):
    run = Run(records / "cndpm" / "seed-0")
    story = run_story(run).replace("\N{NO-BREAK SPACE}", " ")
    assert story.startswith("Five tasks of two digits each")
    assert f"{run.record.summary['accuracy']:.1f} % accuracy on all tasks" in story
    assert f"{run.record.summary['n_experts']} experts" in story
    assert "experts" not in run_story(Run(records / "finetune" / "seed-0"))


def test_the_best_learner_comes_first(records):
    (comparison,) = compare(collect([records]).runs)
    stream, results = comparison_story(comparison)
    assert "the learner is not told" in stream
    ranked = sorted(comparison.groups, key=lambda group: group.mean("accuracy"), reverse=True)
    places = [results.index(f"{group.label} reaches") for group in ranked]
    assert places == sorted(places)
    assert title_of([comparison]) == "split-digits: 2 learners, 4 runs"


def test_an_interrupted_run_says_how_far_it_came(records):
    run = Run(records / "finetune" / "seed-0")
    half = [row for row in run.record.rows if row["step"] <= 20]
    stopped = Run(replace(run.record, rows=half, summary=None, status="interrupted"))
    assert progress_words(stopped) == f"stopped after batch {stopped.n_steps} of {run.n_batches}"
    assert "has reached" in run_story(stopped)
    assert progress_words(run) == "complete"


def test_facts_of_a_single_network_do_not_call_it_an_expert(records):
    names = [name for _, name in run_facts(Run(records / "finetune" / "seed-0"))]
    assert "experts" not in names and "parameters" in names


def test_a_run_that_goes_on_has_not_ended_and_its_samples_are_batches_of_its_size(records):
    run = Run(records / "finetune" / "seed-0")
    going = Run(replace(run.record, summary=None, status="running"))
    assert "has reached" in run_story(going) and "ended" not in run_story(going)
    config = {**run.config, "scenario": {**run.config["scenario"], "batch_size": 4}}
    facts = {name: value for value, name in run_facts(Run(replace(run.record, config=config)))}
    assert facts["samples streamed (about)"] == f"{4 * run.n_steps:,}"
