import pytest
from tests.serving.client import Client, clusters

from cndpm import CNDPMClassifier
from cndpm.serving import Server


@pytest.fixture(scope="session")
def model():
    """A fitted classifier; tests do not change it."""
    X, y = clusters(90)
    quick = {"features": "identity", "representations": "one"}
    return CNDPMClassifier(memory_size=30, n_exemplars=50, settings=quick, random_state=0).fit(X, y)


@pytest.fixture
def model_file(model, tmp_path):
    model.save(tmp_path / "model.cndpm")
    return tmp_path / "model.cndpm"


@pytest.fixture
def served(model_file):
    """A client of a running server."""
    with Server(model_file, port=0) as server:
        client = Client(server.url)
        yield client
        client.close()
