"""Rows to teach, and requests as a client sends them."""

import http.client
import json
from urllib.parse import urlsplit

import numpy as np


def clusters(n, seed=0):
    """Rows of three classes, (n, 4), and their labels."""
    y = np.arange(n) % 3
    X = np.random.default_rng(seed).normal(size=(n, 4)) + 4 * y[:, None]
    return X.astype(np.float32), [f"class {k}" for k in y]


class Client:
    """Sends JSON over one connection."""

    def __init__(self, url, token=None):
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})

    def __call__(self, method, path, body=None, **headers):
        """Returns the status and the answer, read as JSON where it is."""
        self._connection.request(method, path, body, self._headers | headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        return answer.status, json.loads(text) if is_json else text

    def post(self, path, **content):
        return self("POST", path, json.dumps(content))

    def get(self, path):
        return self("GET", path)

    def close(self):
        self._connection.close()
