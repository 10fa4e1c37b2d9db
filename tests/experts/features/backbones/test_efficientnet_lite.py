"""The network equals its layers done one by one, and the pretrained one sees what is in a photograph."""

import pytest
import torch
from sklearn.datasets import load_sample_images
from torch.nn import functional

from cndpm.experts.features.backbones import BACKBONES, EfficientNetLite, pretrained
from cndpm.experts.features.backbones.pretrained import _carried, _weights

STRIDES = (1, 2, 2, 2, 1, 2, 1)
WIDTHS, KERNELS, REPEATS = (2, 3, 4, 5, 6, 7, 8), (3, 3, 5, 3, 5, 5, 3), (1, 2, 2, 3, 3, 4, 1)


def tiny_weights(seed: int = 0) -> dict[str, torch.Tensor]:
    """Random weights of a network of the family, of few channels."""
    generator, weights = torch.Generator().manual_seed(seed), {}

    def add(convolution, normalisation, shape):
        weights[f"{convolution}.weight"] = torch.randn(shape, generator=generator) / shape[1] ** 0.5
        for name in ("weight", "running_var"):
            weights[f"{normalisation}.{name}"] = 0.5 + torch.rand(shape[0], generator=generator)
        for name in ("bias", "running_mean"):
            weights[f"{normalisation}.{name}"] = torch.randn(shape[0], generator=generator)

    add("_conv_stem", "_bn0", (4, 3, 3, 3))
    width, i = 4, 0
    for out, kernel, repeats in zip(WIDTHS, KERNELS, REPEATS, strict=True):
        for _ in range(repeats):
            inner = width if i == 0 else 2 * width
            if i:
                add(f"_blocks.{i}._expand_conv", f"_blocks.{i}._bn0", (inner, width, 1, 1))
            add(f"_blocks.{i}._depthwise_conv", f"_blocks.{i}._bn1", (inner, 1, kernel, kernel))
            add(f"_blocks.{i}._project_conv", f"_blocks.{i}._bn2", (out, inner, 1, 1))
            width, i = out, i + 1
    add("_conv_head", "_bn1", (9, width, 1, 1))
    return weights


def one_by_one(weights: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Computes the outputs layer by layer: padding, convolution, normalisation, rectification."""

    def layer(x, convolution, normalisation, stride=1):
        weight = weights[f"{convolution}.weight"]
        kernel = weight.shape[-1]
        pads = []
        for size in (x.shape[3], x.shape[2]):  # as many places as strides fit, more padding behind
            needed = max((((size + stride - 1) // stride) - 1) * stride + kernel - size, 0)
            pads += [needed // 2, needed - needed // 2]
        groups = x.shape[1] if weight.shape[1] == 1 and x.shape[1] > 1 else 1
        x = functional.conv2d(functional.pad(x, pads), weight, stride=stride, groups=groups)
        given = (weights[f"{normalisation}.{name}"] for name in ("running_mean", "running_var", "weight", "bias"))
        return functional.batch_norm(x, *given, training=False, eps=1e-3)

    x, outputs, i = functional.relu6(layer(x, "_conv_stem", "_bn0", 2)), [], 0
    for stride, repeats in zip(STRIDES, REPEATS, strict=True):
        for again in range(repeats):
            name, before = f"_blocks.{i}.", x
            if i:
                x = functional.relu6(layer(x, f"{name}_expand_conv", f"{name}_bn0"))
            x = functional.relu6(layer(x, f"{name}_depthwise_conv", f"{name}_bn1", 1 if again else stride))
            x = layer(x, f"{name}_project_conv", f"{name}_bn2")
            x = x + before if again else x
            if i in (4, 7, 10, 13):
                outputs += [x.mean(dim=(2, 3)), x.flatten(2).std(dim=2, correction=0)]
            i += 1
    outputs.append(functional.relu6(layer(x, "_conv_head", "_bn1")).mean(dim=(2, 3)))
    return torch.cat(outputs, dim=1)


@pytest.mark.parametrize("size", [32, 45])
def test_the_network_equals_its_layers_done_one_by_one(size):
    weights, x = tiny_weights(), torch.randn(3, 3, size, size + 2, generator=torch.Generator().manual_seed(1))
    network = EfficientNetLite(weights)
    torch.testing.assert_close(network(x), one_by_one(weights, x), rtol=1e-4, atol=1e-4)
    assert network.n_outputs == network(x).shape[1]


@pytest.mark.parametrize("name", BACKBONES)
def test_pretrained_networks_recognise_a_palace(name):
    image = torch.tensor(load_sample_images().images[0]).permute(2, 0, 1)[None, :, :, 106:533].float()
    size, package = BACKBONES[name]
    image = functional.interpolate(image, (size, size), mode="bicubic", antialias=True)
    weights = _weights(_carried(package, name))
    outputs = pretrained(name).network((image - 127) / 128)
    scores = outputs[:, -weights["_fc.weight"].shape[1] :] @ weights["_fc.weight"].T + weights["_fc.bias"]
    assert int(scores.argmax()) == 698  # "palace" among the thousand classes of ImageNet


@pytest.mark.parametrize("missing", ["_conv_head.weight", "_blocks.5._bn1.running_var", "_bn0.bias"])
def test_weights_that_lack_something_are_refused_by_name(missing):
    weights = tiny_weights()
    del weights[missing]
    with pytest.raises(ValueError, match=missing):
        EfficientNetLite(weights)


def test_weights_of_something_else_are_refused():
    with pytest.raises(ValueError, match="blocks"):
        EfficientNetLite({"weight": torch.zeros(3)})
