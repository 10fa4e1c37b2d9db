"""Streams of datasets know where they change: where stages meet."""

from cndpm.streams import load_scenario, stream_from


def test_a_scenario_changes_where_a_stage_begins():
    stream = load_scenario("split-digits").build()
    sizes = [len(batch.x) for batch in stream]
    assert stream.changes == tuple(sum(sizes[:start]) for start in stream.stage_starts[1:])


def test_one_mixed_stage_never_changes():
    assert load_scenario("iid-split-digits").build().changes == ()


def test_real_valued_labels_are_seen_from_the_first_batch():
    x = [[0.0], [1.0]]
    kinds = [stream_from([batch]).target for batch in ((x, [0, 1]), (x, [0.5, 1.5]), x)]
    assert kinds == ["classes", "values", "none"]
