"""The settings as a tree: every spelling means the same, and nonsense is refused by name."""

import ast
import inspect
import json
from collections import OrderedDict
from pathlib import Path
from random import Random

import pytest
import torch
from figures.settings_page import reference
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

import cndpm.model
from cndpm.experts.features import IdentityFeatures, ModuleFeatures
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings, NeuralExperts
from cndpm.model.settings.facts import imported
from cndpm.model.settings.setting_tree import places, walk
from cndpm.names import ObjectNameError
from random_settings import draw, flat, nonsense

DOCS = Path(__file__).parents[2] / "docs"


def valid(seed: int) -> CNDPMSettings:
    try:
        return CNDPMSettings(**draw(Random(seed)))
    except ValidationError:  # what was drawn does not suit each other
        assume(False)
        raise


# One tree, many spellings


@given(st.integers(0, 10**9))
def test_what_is_dumped_is_complete_and_reads_back_equal(seed):
    settings = valid(seed)
    assert CNDPMSettings(**settings.model_dump()) == settings
    assert CNDPMSettings(**json.loads(settings.model_dump_json())) == settings


@given(st.integers(0, 10**9))
def test_names_alone_mean_the_same_as_the_tree(seed):
    settings = valid(seed)
    names = flat(settings)
    shuffled = Random(seed).sample(list(names.items()), len(names))
    assert CNDPMSettings(**dict(shuffled)) == settings


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_changes_win_and_leave_the_rest(seed, other):
    settings, changes = valid(seed), draw(Random(other), share=0.1)
    merged = CNDPMSettings.merge(settings.model_dump(), changes)
    assert CNDPMSettings.merge(merged, changes) == merged
    assert CNDPMSettings.merge(settings.model_dump(), {}) == settings.model_dump()


@pytest.mark.parametrize(
    "spelling",
    [
        {"experts": "neural", "density": "vae", "latent_dim": 8, "clip": 2.0},
        {"experts": {"kind": "neural", "latent_dim": 8, "clip": 2.0}},
        {"experts": {"kind": "neural", "density": {"latent_dim": 8}}, "training": {"clip": 2.0}},
        {"experts": {"kind": "neural", "density": {"kind": "vae", "latent_dim": 8}, "training": {"clip": 2.0}}},
        {"experts": NeuralExperts(latent_dim=8, clip=2.0)},
    ],
)
def test_the_same_settings_in_five_spellings(spelling):
    settings = CNDPMSettings(**spelling)
    assert (settings.experts.density.latent_dim, settings.experts.training.clip) == (8, 2.0)
    assert settings == CNDPMSettings(experts="neural", latent_dim=8, clip=2.0)


def test_log_alpha_chooses_the_novelty():
    assert CNDPMSettings(log_alpha=-600).novelty.model_dump() == {"kind": "fixed", "log_alpha": -600.0}
    assert CNDPMSettings.paper(log_alpha="auto").novelty.kind == "auto"
    assert CNDPMSettings(log_alpha="auto", novelty={"novelty_rate": 0.2}).novelty.novelty_rate == 0.2
    assert CNDPMSettings(log_alpha="auto", novelty_rate=0.2).novelty.novelty_rate == 0.2


def test_a_section_whose_kind_changes_starts_anew_and_others_stay():
    settings = CNDPMSettings.paper(latent_dim=8, hidden=5, memory_size=7)
    changed = settings.changed(density="autoregressive", sharing=False)
    assert changed.experts.density.likelihood == "bernoulli"
    assert changed.changed(density="vae").experts.density.latent_dim == 16
    assert changed.experts.architecture.hidden == 5
    assert settings.changed(latent_dim=9).experts.density.latent_dim == 9
    assert settings.changed(experts="gaussian").memory_size == 7
    assert settings.changed(experts="gaussian").experts == CNDPMSettings().experts


def test_the_class_defaults_are_ours_and_the_paper_is_a_word_away():
    ours, papers = CNDPMSettings(), CNDPMSettings.paper()
    assert (ours.experts.kind, ours.novelty.kind, ours.anytime) == ("gaussian", "auto", True)
    assert (papers.experts.kind, papers.novelty.kind, papers.anytime) == ("neural", "fixed", False)
    assert papers.novelty.log_alpha == -400


# What is refused


@pytest.mark.parametrize("seed", range(200))
def test_nonsense_is_refused_by_name(seed):
    settings, name = nonsense(Random(seed))
    with pytest.raises(ValidationError) as refused:
        CNDPMSettings(**settings)
    assert any(name in problem["msg"] or name in problem["loc"] for problem in refused.value.errors())


REFUSED = {
    "other experts": (
        {"experts": "gaussian", "density_lr": 1e-3},
        "density_lr is a setting of experts='neural'; got experts='gaussian'. Set experts='neural', or leave it out.",
    ),
    "choice of other experts": (
        {"experts": "gaussian", "density": "autoregressive"},
        "density is a setting of experts='neural'; got experts='gaussian'",
    ),
    "two choices away": (
        {"density_blocks": 3},
        "density_blocks is a setting of experts='neural' with density='autoregressive'; got experts='gaussian'. "
        "Set experts='neural' and density='autoregressive', or leave it out.",
    ),
    "two kinds have it": (
        {"features": "fourier", "n_patches": 3},
        "n_patches is a setting of features='auto' or 'patches'; got features='fourier'",
    ),
    "other novelty": (
        {"log_alpha": -400, "novelty_rate": 0.2},
        "novelty_rate is a setting of novelty='auto'; got novelty='fixed'",
    ),
    "novelty said twice": ({"log_alpha": "auto", "novelty": "fixed"}, "log_alpha='auto' means novelty='auto'; got"),
    "given twice": (
        {"experts": {"kind": "neural", "training": {"clip": 1.0}}, "clip": 2.0},
        "clip is given twice: by its name alone and inside 'experts'",
    ),
    "both by name": ({"experts": "neural", "training": {"clip": 1.0}, "clip": 2.0}, "clip is given twice"),
    "typo": ({"memroy_size": 5}, "there is no setting 'memroy_size'. Did you mean memory_size"),
    "inner typo": ({"experts": {"kind": "neural", "latnt_dim": 5}}, "Did you mean latent_dim"),
    "typo of a kind": ({"experts": "nural"}, "there is no kind of experts 'nural'. Did you mean neural"),
    "kind of wrong type": ({"experts": {"kind": ["neural"]}}, "there is no kind of experts"),
    "no section": ({"experts": 3}, "experts must be 'gaussian' or 'neural', or a dictionary of settings; got 3"),
    "no training": ({"experts": "neural", "training": 3}, "training must be a dictionary of settings; got 3"),
    "one level too deep": (
        {"experts": {"kind": "neural", "memory_size": 3}},
        "memory_size is no setting of experts but stands beside it",
    ),
    "wrong section": (
        {"experts": {"kind": "neural", "novelty_rate": 0.1}},
        "novelty_rate is a setting of novelty, not of experts",
    ),
    "companions by name": (
        {"classifier": "both", "n_recent": 3},
        "n_recent is a setting of experts.classifier.companions, and known by its name there only. "
        "Give it as companions={'n_recent': ...}",
    ),
    "name of companions and networks": ({"hidden": 3}, "hidden is a setting of experts='neural'; got"),
    "companions of nobody": ({"companions": {"n_recent": 3}}, "companions is a setting of classifier='both'"),
    "outputs of classes": ({"n_outputs": 2}, "n_outputs is for target='values'; got n_outputs=2 and target='classes'"),
    "networks without labels": (
        {"classifier": "both", "target": "none"},
        "it needs target='classes'; got target='none'",
    ),
    "selection with labels": (
        {"experts": "neural", "selection": "gaussian"},
        "selection='gaussian' is for unlabelled streams",
    ),
    "copies that share": ({"experts": "neural", "inherit": True}, "inherit=True needs sharing=False"),
    "values of a shared covariance": (
        {"target": "values", "covariance": "shared"},
        "covariance='shared' is for target='classes' or 'none'",
    ),
    "channels of plain networks": (
        {"experts": "neural", "architecture": "mlp", "density_channels": 8},
        "got density_channels=8 with architecture='mlp'",
    ),
    "predictor of nothing": (
        {"experts": "neural", "predictor": "a.b:C", "target": "none"},
        "predictor_class is for labelled streams",
    ),
    "more rows than there is memory": ({"kept_rows": 1 << 40}, "less than or equal to 1000000"),
    "no import path": ({"experts": "neural", "density": "a.b:C:D"}, "density_class"),
    "section of another kind": ({"experts": {"kind": "neural", "features": "fourier"}}, "features is a setting of"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_says_where_a_setting_belongs(case):
    settings, message = REFUSED[case]
    with pytest.raises(ValidationError) as refused:
        CNDPMSettings(**settings)
    assert message in str(refused.value)


def test_a_section_of_its_own_refuses_another_kind():
    with pytest.raises(ValueError, match="kind"):
        NeuralExperts(kind="gaussian")


def test_a_mixture_that_is_told_of_tasks_says_so():
    assert CNDPM(CNDPMSettings(novelty="tasks"), input_shape=(3,)).task_listener is not None
    assert CNDPM(CNDPMSettings(), input_shape=(3,)).task_listener is None


def test_patches_of_rows_are_refused():
    with pytest.raises(ValueError, match=r"features='patches' needs images .* got samples of shape \(3,\)"):
        CNDPM(CNDPMSettings(features="patches"), input_shape=(3,))


# Classes of one's own


class Backbone(torch.nn.Module):
    def forward(self, x):
        return x.flatten(1)


class Plain(IdentityFeatures):
    pass


def test_features_of_ones_own_are_named_by_their_import_path(monkeypatch):
    monkeypatch.setattr("cndpm.model.settings.features.imported", lambda path, _: globals()[path.partition(":")[2]])
    for name, kind in (("Backbone", ModuleFeatures), ("Plain", Plain)):
        settings = CNDPMSettings(features=f"tests.here:{name}")
        assert settings.experts.features.feature_class == f"tests.here:{name}"
        assert isinstance(CNDPM(settings, input_shape=(3,)).bank.feature_map, kind)
    with pytest.raises(ValueError, match="must make a FeatureMap or a torch module"):
        CNDPM(CNDPMSettings(features="tests.here:OrderedDict"), input_shape=(3,))


def test_networks_of_ones_own_are_named_by_their_import_path():
    own = {"density": "cndpm.experts.neural.vae:VAE", "predictor": "cndpm.experts.neural.lateral_predictors:Classifier"}
    settings = CNDPMSettings.paper(**own)
    assert flat(settings)["density"] == own["density"]
    expert = CNDPM(settings, input_shape=(3,), n_classes=2).bank._placeholder
    assert (type(expert.density).__name__, type(expert.predictor).__name__) == ("VAE", "Classifier")


def test_an_import_path_that_leads_nowhere_is_named():
    assert imported("collections:OrderedDict", "density_class") is OrderedDict
    for path in ("no_such_package:Class", "collections:NoSuchClass"):
        settings = CNDPMSettings.paper(density=path)
        with pytest.raises(ObjectNameError, match=f"density_class='{path}' cannot be imported"):
            CNDPM(settings, input_shape=(3,), n_classes=2)


# The tree itself


def test_every_field_is_described():
    for place in walk(CNDPMSettings):
        assert place.field.description, place.path
        assert all("kind" not in s.model_fields or s.model_fields["kind"].description for s in sections(place))


def sections(place):
    return place.branch.members.values() if place.branch else ()


def test_a_name_has_one_place_whatever_is_chosen():
    for name, found in places(CNDPMSettings).items():
        named = [place for place in found if place.by_name]
        for i, one in enumerate(named):
            for other in named[:i]:
                chosen = {choice.path: choice.kind for choice in one.choices}
                assert any(chosen.get(choice.path, choice.kind) != choice.kind for choice in other.choices), name


def test_every_field_is_read_by_something():
    """By the section that has it, in what it builds, or by the learner through its settings."""
    outside = reads(Path(cndpm.model.__file__).parent.rglob("*.py"), owners={"settings", "experts"})
    for place in walk(CNDPMSettings):
        sections = {section.__name__ for section in place.owner.__mro__}
        inside = reads([Path(inspect.getfile(place.owner))], owners={"self"}, within=sections)
        assert place.name in inside | outside, place.path


def reads(files, *, owners, within=None):
    """Names of the attributes that are read of variables or attributes with these names."""
    found = set()
    for file in files:
        for tree in ast.walk(ast.parse(file.read_text())):
            if within is None or (isinstance(tree, ast.ClassDef) and tree.name in within):
                nodes = ast.walk(tree) if within is not None else [tree]
                found |= {
                    node.attr for node in nodes if isinstance(node, ast.Attribute) and named(node.value) in owners
                }
    return found


def named(node):
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def test_the_reference_is_what_the_sections_say():
    assert (DOCS / "settings.md").read_text() == reference()


def test_the_reference_lists_every_field():
    text = reference()
    assert all(f"| `{place.name}` |" in text for place in walk(CNDPMSettings))
