"""A small version of ``python -m torture.endless``, and that it would notice what grows."""

from torture.endless import Block, Course, growth, made

from cndpm import CNDPMClassifier
from torture import endless


def blocks(costs, *, memory=100.0, parts=3):
    return [Block(n, parts, cost, memory * (1 + n / 1000), True, None, cost / 100) for n, cost in enumerate(costs)]


def test_the_last_fifth_is_compared_with_the_first_after_the_last_expert():
    early, late = blocks([900.0] * 10, parts=2), blocks([100.0] * 10 + [110.0] * 10)
    found = growth(early + late)
    assert abs(found["by_young"] - 0.1) < 1e-9
    assert abs(found["mib"] - 0.016) < 1e-3
    assert "kib" not in found


def test_a_model_that_slows_down_ends_with_1(monkeypatch):
    for costs, code in (([100.0] * 40, 0), ([100.0] * 20 + [120.0] * 20, 1)):
        assert endless._judge("one", Course(made("one"), blocks=blocks(costs))) == code


def test_a_course_in_two_parts_goes_on_to_the_same_model(tmp_path, monkeypatch):
    monkeypatch.setattr(endless, "_ROWS", 25)
    monkeypatch.setattr(endless, "_EVERY", 3)

    def begin():
        settings = {"features": "identity", "representations": "one"}
        return Course(CNDPMClassifier(memory_size=20, batch_size=5, settings=settings, random_state=0))

    whole, first = begin(), begin()
    for _ in range(20):
        whole.advance(is_warm=True)
    for _ in range(8):
        first.advance(is_warm=True)
    first.store(tmp_path)
    second = Course.stored(tmp_path, begin().model)
    while len(second.blocks) < 20:
        second.advance(is_warm=True)
    assert [block.parts for block in second.blocks] == [block.parts for block in whole.blocks]
    x = endless.block(0)[0].numpy()
    assert (second.model.predict_proba(x) == whole.model.predict_proba(x)).all()
    assert any(block.by_young is not None for block in whole.blocks)


def test_rivers_model_goes_on_row_by_row_after_a_kill_that_left_half_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(endless, "_ROWS", 20)
    monkeypatch.setattr(endless, "_STORED_EVERY", 0.0)
    arguments = ["--model", "river", "--window", "20"]
    endless.main([*arguments, "--n", "60", "--folder", str(tmp_path)])
    (tmp_path / "course.pickle.new").write_bytes((tmp_path / "course.pickle").read_bytes()[:100])
    assert endless.main([*arguments, "--n", "100", "--folder", str(tmp_path)]) == 0
    second, whole = Course.stored(tmp_path, None), Course(made("river"))
    while len(whole.blocks) < 5:
        whole.advance(is_warm=False)
    assert second.n_steps == whole.n_steps == 100
    row = dict(zip("abcd", endless.block(0)[0][0].tolist(), strict=True))
    assert second.model.predict_proba_one(row) == whole.model.predict_proba_one(row)
