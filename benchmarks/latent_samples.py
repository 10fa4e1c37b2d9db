"""Accuracy of trained convolutional experts by the latent noise that their densities are evaluated with.

    python -m benchmarks.latent_samples split-cifar10 --seeds 10 11 12 13 14 --data DIR --out latent.jsonl

One run in the paper's configuration a seed, on a held-out tenth of the training samples (``--test``: the test set), and
then the same experts with other noise: fixed tables of several sizes, other tables of 16, orthogonal ones, and noise of
every image's own, as the authors' release draws it. Differences are paired: nothing but the evaluation changes.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from cndpm.experiments import configure, run
from cndpm.experiments.environment import describe_environment
from cndpm.experiments.evaluation import TestSet
from cndpm.experts.neural.neural_bank import NeuralBank
from cndpm.experts.neural.vae import VAE, evaluation_noise
from cndpm.learner import Learner

Draw = Callable[[int], Tensor]
"""Makes noise (S, n or 1, latent) for n images."""

_TRUTH = 256
"""Samples of the table that others are compared with."""


def variants(latent: int, device: torch.device) -> Iterator[tuple[str, Draw]]:
    """Yields names and ways to draw noise.

    Args:
        latent: Dimension of the codes.
        device: Where the noise is needed.
    """
    for size in (_TRUTH, 128, 64, 32, 16):
        yield f"fixed {size}", _same(evaluation_noise(size, latent).to(device))
    for size in (128, 64, 16):
        yield f"orthogonal {size}", _same(orthogonal_noise(size, latent).to(device))
    for table in range(1, 5):
        half = torch.randn(8, latent, generator=torch.Generator().manual_seed(table))
        yield f"table {table} of 16", _same(torch.cat([half, -half]).to(device))
    for size in (16, 64):
        generator = torch.Generator(device).manual_seed(0)
        yield f"own {size}", lambda n, s=size, g=generator: torch.randn(s, n, latent, generator=g, device=device)  # type: ignore[misc]


def orthogonal_noise(size: int, latent: int) -> Tensor:
    """Returns antithetic points at right angles to each other, as many as there is room for, (size, latent).

    Args:
        size: Number of points, even.
        latent: Dimension of one.
    """
    generator = torch.Generator().manual_seed(0)
    bases = [torch.linalg.qr(torch.randn(latent, latent, generator=generator))[0] for _ in range(0, size // 2, latent)]
    half = torch.cat(bases)[: size // 2] * math.sqrt(latent)
    return torch.cat([half, -half])


def _same(noise: Tensor) -> Draw:
    return lambda _: noise.unsqueeze(1)


def gates(learner: Learner, vaes: list[VAE], draw: Draw, test: TestSet) -> Tensor:
    """Returns log p(k | x) of all samples, (N, K), with densities evaluated by other noise.

    Args:
        learner: The learner; its noise is replaced.
        vaes: Its experts' densities.
        draw: Makes the noise.
        test: The samples.
    """
    for vae in vaes:
        vae.answer = lambda x, own, lateral, v=vae: v._bound(x, lateral, draw(len(x)), own)  # type: ignore[method-assign, misc]
    assert learner.experts is not None
    asked = [learner.experts.expert_log_proba(x) for t in range(len(test.tasks)) for x, _ in test.chunks(t)]
    return torch.cat(asked).double().cpu()


def scores(log_gate: Tensor, answers: Tensor, y: Tensor) -> dict[str, float]:
    """Returns the accuracy of the mixture and how often it is right where the classes' own experts are chosen.

    Args:
        log_gate: log p(k | x), (N, K).
        answers: log p(y | x, k), (N, K, C).
        y: The classes, (N,).
    """
    mixture = (log_gate.unsqueeze(2) + answers).logsumexp(1).argmax(1)
    owner = (answers.argmax(2) == y[:, None]).double()
    right = owner.gather(1, log_gate.argmax(1, keepdim=True)).mean()
    return {"accuracy": 100 * float((mixture == y).double().mean()), "chosen": 100 * float(right)}


def measure(
    name: str,
    seed: int,
    *,
    data: str | None,
    device: str,
    validation: bool,
    overrides: list[str],
    n_samples: int | None = None,
) -> Iterator[dict[str, Any]]:
    """Yields the run's summary and then a line for every way to draw noise.

    Args:
        name: Of the scenario.
        seed: Of the run.
        data: Where datasets lie.
        device: Where it is computed.
        validation: Whether a tenth of the training samples is tested on.
        overrides: As for ``--set``.
        n_samples: Test samples that noise is compared on; None: all.
    """
    config = configure(
        name,
        preset="paper",
        seed=seed,
        device=device,
        validation=validation,
        overrides=["run.evaluations=0", *overrides],
    )
    stream = config.scenario.build(data_dir=data, seed=seed, device=config.device)
    learner = config.build_learner(stream)
    with TemporaryDirectory() as folder:
        summary = run(learner, stream, folder, settings=config.run)
    yield {"noise": "run", **summary}
    bank = learner.bank  # type: ignore[attr-defined]
    assert isinstance(bank, NeuralBank)
    assert learner.experts is not None
    vaes = [expert.density for expert in bank.experts if isinstance(expert.density, VAE)]
    test = TestSet(stream.tasks, labelled=True)
    test = test.subsample(n_samples, seed) if n_samples else test
    answers = [learner.experts.expert_predict_log_proba(x) for t in range(len(test.tasks)) for x, _ in test.chunks(t)]
    known, y, truth = torch.cat(answers).double().cpu(), torch.cat([task.y for task in test.tasks]).cpu(), None
    for label, draw in variants(vaes[0].latent_dim, vaes[0].noise.device):
        gate = gates(learner, vaes, draw, test)
        truth = gate if truth is None else truth
        error = (gate - gate.mean(1, keepdim=True)) - (truth - truth.mean(1, keepdim=True))
        errors = {"offsets": error.mean(0).tolist(), "spread": float(error.std(0).mean())}
        yield {"noise": label, **scores(gate, known, y), **errors}


def main() -> None:
    """Appends a line for the run and one a way to draw noise to the record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latent_samples", description=__doc__)
    parser.add_argument("scenario")
    parser.add_argument("--seeds", type=int, nargs="+", default=[10])
    parser.add_argument("--test", action="store_true")
    parser.add_argument("--set", dest="overrides", action="append", default=[])
    parser.add_argument("--samples", type=int, help="test samples that noise is compared on")
    parser.add_argument("--data")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--commit", help="where the source has no repository about it")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    environment = describe_environment(options.device)
    facts = {
        "command": f"python -m benchmarks.latent_samples {options.scenario} --seeds {' '.join(map(str, options.seeds))}"
        + " --test" * options.test,
        "commit": options.commit or environment["commit"],
        "machine": f"{environment['device']}, torch {environment['torch']}",
        "scenario": options.scenario,
        "validation": not options.test,
    }
    like = {"data": options.data, "device": options.device, "overrides": options.overrides}
    for seed in options.seeds:
        for line in measure(options.scenario, seed, validation=not options.test, n_samples=options.samples, **like):
            print(seed, line["noise"], line["accuracy"], flush=True)
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(facts | {"seed": seed} | line) + "\n")


if __name__ == "__main__":
    main()
