"""Features of a backbone: views, units, expansion, state, and files of weights that are not trusted."""

import os
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tests.experts.features.backbones.test_efficientnet_lite import tiny_weights

from cndpm import CNDPMClassifier
from cndpm.experts.features.backbones import BACKBONES, BackboneFeatures, backbone, pretrained
from cndpm.extras import MissingExtraError
from cndpm.names import UnknownNameError


@pytest.fixture(scope="module")
def weights(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    save_file(tiny_weights(), path)
    return path


def pictures(n: int = 60, seed: int = 0) -> torch.Tensor:
    """Smooth pictures without a handedness: blobs at random places, values in [0, 1]."""
    noise = torch.rand(n, 3, 4, 4, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.interpolate(noise, (16, 16), mode="bilinear")


def standardised(rows: torch.Tensor) -> torch.Tensor:
    deviations = rows.std(dim=0, correction=0)
    return (rows - rows.mean(dim=0)) / torch.where(deviations > 1e-6, deviations, 1.0)


def fitted(weights: Path, x: torch.Tensor, **options) -> BackboneFeatures:
    features = BackboneFeatures(weights=weights, image_size=64, **options)
    features.fit(x, generator=torch.Generator().manual_seed(0))
    return features


def test_projections_are_rectified_and_follow_from_the_seed(weights):
    x = pictures()
    features = fitted(weights, x, n_expanded=20)
    outputs = features._outputs(x)
    rows = standardised(outputs)
    directions = backbone._random_directions(rows.shape[1], 20, features._seed)
    expanded = torch.cat([rows, (rows @ directions).clamp_min(0)], dim=1)
    torch.testing.assert_close(features(x), standardised(expanded), rtol=1e-3, atol=1e-3)
    assert features.n_features == rows.shape[1] + 20
    assert not torch.equal(directions, backbone._random_directions(rows.shape[1], 20, features._seed + 1))


def test_directions_are_the_same_everywhere():
    torch.testing.assert_close(
        backbone._random_directions(2, 2, 0), torch.tensor([[1.764052, 0.400157], [0.978738, 2.240893]]) / 2**0.5
    )


def test_a_mirror_image_has_the_same_features_where_the_stream_has_no_handedness(weights):
    x = torch.cat([pictures(), pictures().flip(-1)])
    features = fitted(weights, x)
    assert features._mirrors
    torch.testing.assert_close(features(x[:5]), features(x[:5].flip(-1)), rtol=1e-3, atol=5e-3)


def test_where_the_stream_has_a_handedness_mirror_images_differ(weights):
    ramp = torch.linspace(0, 1, 16) + 0.1 * torch.rand(60, 3, 16, 1, generator=torch.Generator().manual_seed(0))
    features = fitted(weights, ramp.clamp(0, 1))
    assert not features._mirrors
    assert not torch.allclose(features(ramp[:5]), features(ramp[:5].flip(-1)), atol=0.1)


def test_bytes_and_fractions_give_the_same_features(weights):
    x = pictures()
    torch.testing.assert_close(fitted(weights, x)(x), fitted(weights, 255 * x)(255 * x), rtol=1e-3, atol=1e-3)


def test_grey_images_are_taken(weights):
    x = pictures()[:, :1]
    torch.testing.assert_close(fitted(weights, x)(x), fitted(weights, x.expand(-1, 3, -1, -1))(x), rtol=1e-3, atol=1e-3)


def test_a_restored_map_gives_the_same_bits_and_keeps_neither_network_nor_projections(weights):
    x = pictures()
    features, restored = fitted(weights, x, n_expanded=30), BackboneFeatures(weights=weights, n_expanded=3)
    state = features.state_dict()
    restored.load_state_dict(state)
    assert torch.equal(features(x), restored(x))
    kept = sum(value.numel() for part in ("inner", "outer") for value in (state[part]["shift"], state[part]["scale"]))
    assert features.n_numbers_kept == kept


def test_a_state_made_with_other_weights_is_refused(weights, tmp_path):
    save_file(tiny_weights(seed=1), tmp_path / "other.safetensors")
    state = fitted(weights, pictures()).state_dict()
    with pytest.raises(ValueError, match="sha256"):
        BackboneFeatures(weights=tmp_path / "other.safetensors").load_state_dict(state)


def test_a_model_with_a_backbone_learns_saves_and_loads(weights, tmp_path):
    x = torch.cat([0.5 * pictures(40, 1), 0.5 + 0.5 * pictures(40, 2)])
    y = torch.arange(80) // 40
    settings = {"features": "backbone", "weights": str(weights), "image_size": 32, "n_expanded": 8}
    model = CNDPMClassifier(input_shape=(3, 16, 16), memory_size=30, settings=settings, random_state=0)
    model.fit(x.numpy(), y.numpy())
    model.save(tmp_path / "model.cndpm")
    loaded = CNDPMClassifier.load(tmp_path / "model.cndpm")
    assert (loaded.predict_proba(x.numpy()) == model.predict_proba(x.numpy())).all()
    assert model.score(x.numpy(), y.numpy()) > 0.95


def test_rows_and_unknown_networks_are_refused_before_anything_is_made():
    rows = torch.zeros(20, 4).numpy()
    with pytest.raises(ValueError, match="input_shape"):
        CNDPMClassifier(settings={"features": "backbone"}).fit(rows, [0, 1] * 10)
    with pytest.raises(ValueError, match=r"efficientnet-lit0.*Did you mean efficientnet-lite0"):
        CNDPMClassifier(input_shape=(1, 2, 2), settings={"backbone": "efficientnet-lit0", "features": "backbone"}).fit(
            rows, [0, 1] * 10
        )


def test_a_package_that_is_missing_is_named_with_its_command(monkeypatch):
    monkeypatch.setattr("cndpm.extras.is_installed", lambda module: False)
    with pytest.raises(MissingExtraError, match=r"cndpm\[backbones\]"):
        pretrained("efficientnet-lite0")
    with pytest.raises(UnknownNameError, match="backbone"):
        pretrained("resnet50")
    assert set(BACKBONES) == {f"efficientnet-lite{i}" for i in range(3)}


class _Bomb:
    def __reduce__(self):
        return (Path.touch, (Path("exploded"),))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 nonsense", pickle.dumps(_Bomb()), pickle.dumps([1, 2])])
def test_files_that_hold_no_weights_are_refused_and_no_code_in_them_runs(content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("weights.pth", "weights.safetensors"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match="weights"):
            pretrained("efficientnet-lite0", tmp_path / name)
    assert not (tmp_path / "exploded").exists()
    with pytest.raises(ValueError, match="no file"):
        pretrained("efficientnet-lite0", tmp_path / "absent.pth")


def test_a_file_of_weights_that_changed_is_read_again(tmp_path):
    path, checksums = tmp_path / "weights.safetensors", []
    for seed in (0, 1):
        save_file(tiny_weights(seed), path)
        os.utime(path, ns=(seed, seed))
        checksums.append(pretrained("efficientnet-lite0", path).checksum)
    assert checksums[0] != checksums[1]
