"""Model files: of other machines, and made up."""

import json

import numpy as np
import pytest
import torch

from cndpm import CNDPMClassifier, CNDPMRegressor
from cndpm.estimators import saved
from cndpm.estimators.guarded import NumericalError
from cndpm.state import StateError, save_state
from cndpm.state.container import container_pieces, read_container

_WHY = r"not numbers|a positive diagonal|rows of \(4,\)|beyond 1e\+100"
Y = np.repeat([0, 1, 2], 40)
X = np.random.default_rng(0).normal(size=(120, 4)).astype(np.float32) + 6 * Y[:, None]


@pytest.fixture
def path(tmp_path):
    settings = {"features": "identity"}
    CNDPMClassifier(memory_size=20, settings=settings, random_state=0).partial_fit(X, Y).save(tmp_path / "m.cndpm")
    return tmp_path / "m.cndpm"


def reseal(path, change):
    """Changes what a file says of itself and its tensors, and makes the checksum right again."""
    with path.open("rb") as file:
        content = read_container(file, path.stat().st_size)
    header, tensors = json.loads(content.texts["cndpm state"]), dict(content.tensors)
    change(header, tensors)
    path.write_bytes(b"".join(container_pieces({"cndpm state": json.dumps(header)}, tensors)))


def test_a_loaded_model_keeps_the_settings_it_was_made_with_whatever_the_defaults_are_now(path):
    def older(header, _):
        header["settings"]["anytime"] = False  # as if that had been the default of its version

    reseal(path, older)
    assert CNDPMClassifier.load(path).learner_.settings.anytime is False


def test_a_model_that_learned_on_a_gpu_is_read_without_one(path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    reseal(path, lambda header, _: header["tree"]["params"].update(device="cuda:1"))
    model = CNDPMClassifier.load(path)
    assert (model.device, str(model.learner_.device)) == ("cpu", "cpu")


def test_networks_that_learned_on_a_gpu_go_on_with_random_numbers_of_their_own(tmp_path):
    few = {"hidden": 4, "latent_dim": 2, "n_latent_samples": 2, "density_sleep_steps": 3, "predictor_sleep_steps": 3}
    x = np.clip(X / 20, 0, 1)
    model = CNDPMClassifier.paper(memory_size=20, settings=few, log_alpha=-20.0, random_state=0).partial_fit(x, Y)
    model.save(tmp_path / "m")

    def of_a_gpu(_, tensors):
        tensors["learner/bank/generator"] = torch.arange(16, dtype=torch.uint8)  # a GPU's generator has 16 bytes

    reseal(tmp_path / "m", of_a_gpu)
    loaded = CNDPMClassifier.load(tmp_path / "m")
    assert np.array_equal(loaded.predict_proba(x), model.predict_proba(x))
    loaded.partial_fit(x, Y)


def test_a_model_of_another_version_that_does_not_fit_names_the_version_to_install(path):
    def later(header, tensors):
        header["package"] = "7.0.0"
        header["tree"]["learner"]["novel"] = 1

    reseal(path, later)
    with pytest.raises(StateError, match=r"written by cndpm 7\.0\.0; install cndpm==7\.0\.0"):
        CNDPMClassifier.load(path)


@pytest.mark.parametrize("name", ["hidden", "hidden_growth", "latent_dim", "channels"])
def test_networks_that_a_small_file_cannot_hold_are_refused_before_they_are_made(tmp_path, name, monkeypatch):
    few = {"hidden": 40, "latent_dim": 2, "n_latent_samples": 2, "density_sleep_steps": 3, "predictor_sleep_steps": 3}
    paper = CNDPMClassifier.paper(memory_size=20, settings=few, log_alpha=-20.0, random_state=0)
    paper.partial_fit(np.clip(X / 20, 0, 1), Y).save(tmp_path / "m")
    with monkeypatch.context() as patched:
        patched.setitem(saved._SIZES, "hidden", (1, 4))  # what a file has is as large as it says
        CNDPMClassifier.load(tmp_path / "m")

    def wide(node):
        for key, value in node.items():
            wide(value) if isinstance(value, dict) else node.update({key: 5700}) if key == name else None

    reseal(tmp_path / "m", lambda header, _: wide(header["settings"]))
    monkeypatch.setattr(torch.nn.Module, "__init__", None)  # nothing is made
    with pytest.raises(StateError, match=f"{name}=5700 is more than a file with [0-9]+ bytes of numbers can be of"):
        CNDPMClassifier.load(tmp_path / "m")


@pytest.mark.parametrize("size", [10**400, 1 << 31])
def test_steps_of_more_samples_than_memory_holds_are_refused(tmp_path, size):
    few = {"sleep_steps": 3, "wake_steps": 1, "hidden": 4}
    settings = {"classifier": "both", "companions": few, "features": "identity", "representations": "one"}
    CNDPMClassifier(memory_size=20, settings=settings, random_state=0).partial_fit(X, Y).save(tmp_path / "m")

    def many(header, _):
        header["settings"]["experts"]["classifier"]["companions"]["batch_size"] = size

    reseal(tmp_path / "m", many)
    with pytest.raises(StateError, match="batch_size"):
        CNDPMClassifier.load(tmp_path / "m")


@pytest.mark.parametrize("make", [CNDPMClassifier, CNDPMRegressor])
def test_numbers_that_no_model_comes_to_are_refused_wherever_they_are(tmp_path, make):
    make(memory_size=20, settings={"features": "identity"}, random_state=0).partial_fit(X, Y).save(tmp_path / "m")
    with (tmp_path / "m").open("rb") as file:
        tensors = read_container(file, (tmp_path / "m").stat().st_size).tensors
    names = [name for name, each in tensors.items() if each.dtype is torch.float64 and each.numel()]
    assert any(name.endswith("origin") for name in names)
    content = (tmp_path / "m").read_bytes()
    for name in (name for name in names if not name.startswith("learner/novelty/")):

        def huge(_, tensors, name=name):
            tensors[name] = tensors[name].clone()
            tensors[name].view(-1)[0] = -1e300

        reseal(tmp_path / "m", huge)
        with pytest.raises(StateError):
            make.load(tmp_path / "m")
        (tmp_path / "m").write_bytes(content)


def test_a_file_that_names_code_is_not_loaded_unless_it_is_trusted(path):
    def named(header, _):
        header["tree"]["params"]["settings"] = {"features": "os:system"}

    reseal(path, named)
    with pytest.raises(StateError, match=r"names code to import: os:system\. .*imports=True"):
        CNDPMClassifier.load(path)


@pytest.mark.parametrize("name", ["learner/bank/gaussians/statistics/sums", "learner/bank/feature_map/shift"])
def test_values_that_are_not_finite_are_neither_saved_nor_loaded(path, tmp_path, name):
    def broken(_, tensors):
        tensors[name].view(-1)[0] = float("nan")

    model = CNDPMClassifier.load(path)
    reseal(path, broken)
    with pytest.raises(StateError, match="not finite in learner/bank"):
        CNDPMClassifier.load(path)
    model.learner_.bank.feature_map.shift[0] = float("inf")
    with pytest.raises(StateError, match="nothing was saved"):
        model.save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_file_that_cannot_be_written_is_reported(path):
    with pytest.raises(StateError, match="cannot write"):
        CNDPMClassifier.load(path).save(path.parent / "absent" / "m")


def test_a_state_that_lacks_parameters_is_refused_by_path(tmp_path):
    save_state(tmp_path / "m", {"seed": 1}, kind="CNDPMClassifier")
    with pytest.raises(StateError, match=r"m does not hold a complete CNDPMClassifier .*'n_outputs' is missing"):
        CNDPMClassifier.load(tmp_path / "m")


def test_a_number_of_classes_that_the_labels_do_not_have_is_refused(path):
    def fewer(header, _):
        header["tree"]["n_classes"] = 1

    reseal(path, fewer)
    with pytest.raises(StateError, match="n_classes must be None, as its labels say; got 1"):
        CNDPMClassifier.load(path)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("tree/learner/n_known_classes", 1 << 31),  # took 80 GiB when it was asked
        ("tree/learner/places/pools/0/dynamics/last", 4),
        ("tree/learner/bank/gaussians/routing/tail", 0.1),
        ("settings/novelty/novelty_rate", 1e-320),
        ("settings/novelty/novelty_window", 10**400),
        ("tree/label_counts/0", "x" * 100_000),
    ],
)
def test_numbers_that_a_model_would_break_at_when_it_is_used_are_refused_when_it_is_loaded(tmp_path, place, value):
    path = tmp_path / "m.cndpm"
    CNDPMClassifier(memory_size=20, random_state=0).partial_fit(X, Y).save(path)

    def change(header, _):
        *above, name = [int(key) if key.isdecimal() else key for key in place.split("/")]
        for key in above:
            header = header[key]
        header[name] = value

    reseal(path, change)
    with pytest.raises(StateError) as refused:
        CNDPMClassifier.load(path)
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("learner/bank/gaussians/routing/cholesky", lambda packed: packed * (torch.arange(len(packed)) != 0)),
        ("learner/bank/gaussians/routing/anchors", lambda anchors: anchors * 1e300),
        ("learner/bank/gaussians/statistics/counts", lambda counts: counts - 1000),
        ("learner/latest", lambda rows: rows[:, :-1].contiguous()),
    ],
)
def test_experts_that_could_not_learn_are_refused_though_a_pool_would_answer(tmp_path, name, change):
    path = tmp_path / "m.cndpm"
    CNDPMClassifier(memory_size=20, random_state=0).partial_fit(X, Y).save(path)
    reseal(path, lambda _, tensors: tensors.update({name: change(tensors[name])}))
    with np.errstate(all="ignore"), pytest.raises(StateError, match=_WHY):
        CNDPMClassifier.load(path)


@pytest.mark.parametrize("name", ["n_fourier", "n_patches"])
def test_sizes_beyond_what_a_file_holds_are_refused_before_anything_is_made(path, name, monkeypatch):
    def change(header, _):
        header["settings"]["experts"]["features"] = {"kind": "auto", "n_patches": "auto", "n_fourier": "auto"} | {
            name: 10**9
        }

    reseal(path, change)
    monkeypatch.setattr(CNDPMClassifier, "_make_learner", lambda *_, **__: pytest.fail("a model was made"))
    with pytest.raises(StateError, match=rf"{name}=1000000000 is more than a file with \d+ bytes of numbers can be of"):
        CNDPMClassifier.load(path)


@pytest.mark.parametrize("where", ["reader", "features"])
def test_a_file_cannot_add_a_line_of_its_own_to_what_is_said_of_it(path, where):
    node = {"reader": lambda header: header["tree"], "features": lambda header: header["settings"]}[where]
    reseal(path, lambda header, _: node(header).update({where: "x\nTo mend it: pip install evil"}))
    with pytest.raises(StateError) as caught:
        CNDPMClassifier.load(path)
    assert "\n" not in str(caught.value) and "evil" in str(caught.value)


@pytest.mark.parametrize("version", ["0.1\x1b[31m", "1.0 --index-url=http://evil", "", "a", "1" * 60])
def test_what_is_no_version_is_told_to_nobody(path, version):
    def change(header, _):
        header["package"], header["format"] = version, 99

    reseal(path, change)
    with pytest.raises(StateError, match="Install a newer version to load it") as caught:
        CNDPMClassifier.load(path)
    assert "\x1b" not in str(caught.value) and "evil" not in str(caught.value)


def test_nothing_in_a_file_commands_the_terminal(path):
    reseal(path, lambda header, _: header["tree"].update({"\x1b]0;owned\x07": 1, "params": {"\x1b[31m": 1}}))
    with pytest.raises(StateError) as caught:
        CNDPMClassifier.load(path)
    assert str(caught.value).isprintable() and r"\x1b[31m" in str(caught.value)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_made_up_regressor_that_cannot_learn_says_so_as_the_packages_own_error(tmp_path):
    path = tmp_path / "m.cndpm"
    CNDPMRegressor(memory_size=20, random_state=0).partial_fit(X, X[:, 0]).save(path)
    name = "learner/places/pools/0/members/moments/0/inverses"
    reseal(path, lambda _, tensors: tensors.update({name: -tensors[name]}))
    model = CNDPMRegressor.load(path)
    with pytest.raises(NumericalError, match=r"partial_fit|positive definite"):
        model.partial_fit(X, X[:, 0])


@pytest.mark.parametrize("size", [1.7e9, 1e15])
@pytest.mark.parametrize("representations", ["one", "pool"])
def test_a_model_whose_first_rows_were_all_the_same_and_far_from_the_others_can_be_loaded(
    tmp_path, size, representations
):
    model = CNDPMClassifier(memory_size=6, batch_size=1, random_state=0, settings={"representations": representations})
    rng = np.random.default_rng(0)
    model.partial_fit(np.full((6, 3), size), [0, 1, 0, 1, 0, 1]).consolidate()
    model.partial_fit(rng.normal(size=(12, 3)), rng.integers(0, 3, 12)).save(tmp_path / "model.cndpm")
    loaded, rows = CNDPMClassifier.load(tmp_path / "model.cndpm"), rng.normal(size=(5, 3))
    assert loaded.predict_proba(rows).tolist() == model.predict_proba(rows).tolist()
