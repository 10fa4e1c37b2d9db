import pytest
import torch

from cndpm.devices import resolve_device, restore_generator
from cndpm.validation import ConfigError


def test_auto_is_the_gpu_where_there_is_one(monkeypatch):
    for there, device in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert resolve_device("auto") == device


def test_a_gpu_that_is_not_there_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="'cuda:1' was asked for, but torch sees no GPU here; use 'auto' or 'cpu'"):
        resolve_device("cuda:1")


def test_a_name_that_is_no_device_is_refused():
    with pytest.raises(ConfigError, match="got 'gpu'"):
        resolve_device("gpu")


def test_a_device_without_numbers_is_refused():
    with pytest.raises(ConfigError, match="'meta' holds no numbers"):
        resolve_device("meta")


def test_a_source_of_random_numbers_goes_on_from_its_state_and_anew_from_that_of_another_device():
    first, second = torch.Generator().manual_seed(3), torch.Generator()
    state = first.get_state()
    restore_generator(second, state)
    assert torch.equal(torch.rand(2, generator=second), torch.rand(2, generator=first))
    draws = []
    for _ in range(2):
        restore_generator(second, state[:16])
        draws.append(torch.rand(2, generator=second))
    assert torch.equal(*draws)
