"""Serving against the same model behind plain FastAPI: requests a second and the 99th percentile, in one run.

    python -m benchmarks.serving                     # two minutes; two cores: a server and its clients

Rows of 32 features, ten classes, one row a request. The plain server is what one writes first: an endpoint that calls
`predict`, one request a call. Both servers are processes of their own and take turns; clients are connections that send
their next request when the last one is answered. A third part learns, one row a request, each acknowledged when it is
on the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import socket
import tempfile
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import torch
import uvicorn
from fastapi import FastAPI

from cndpm import CNDPMClassifier
from cndpm.serving import Limits, Server
from cndpm.serving.bodies import Asked

_N_FEATURES, _N_CLASSES = 32, 10


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns clusters: (n, 32) and (n,)."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(_N_CLASSES, _N_FEATURES)) * 2
    y = rng.integers(0, _N_CLASSES, n)
    return centres[y] + rng.normal(size=(n, _N_FEATURES)), y


def plain_app(path: str) -> FastAPI:
    """Makes the application without batching."""
    model = CNDPMClassifier.load(path)
    app = FastAPI()

    @app.post("/predict")
    def predict(body: Asked) -> dict[str, Any]:
        log_proba = model.predict_log_proba(np.array(body.X))
        labels = model.classes_[log_proba.argmax(axis=1)]
        return {"prediction": labels.tolist(), "proba": np.exp(log_proba).tolist()}

    return app


def serve_plain(path: str, port: int) -> None:
    torch.set_num_threads(1)
    uvicorn.run(plain_app(path), port=port, log_level="warning", access_log=False)


def serve_batched(path: str, port: int, window: float) -> None:
    torch.set_num_threads(1)
    Server(path, port=port, limits=Limits(window=window)).run()


def request(path: str, content: dict[str, Any]) -> bytes:
    """Returns a request as bytes."""
    body = json.dumps(content).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


async def one_client(port: int, requests: list[bytes], until: float, found: list[float]) -> None:
    """Sends one request after another; notes the seconds of each."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    number = 0
    while time.perf_counter() < until:
        began = time.perf_counter()
        writer.write(requests[number % len(requests)])
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        found.append(time.perf_counter() - began)
        number += 1
    writer.close()


def load(port: int, requests: list[list[bytes]], seconds: float) -> list[float]:
    """Returns the seconds of all requests that so many clients sent in this time."""
    found: list[float] = []

    async def run() -> None:
        until = time.perf_counter() + seconds
        await asyncio.gather(*(one_client(port, each, until, found) for each in requests))

    asyncio.run(run())
    return found


def started(target: Callable[..., None], *arguments: Any) -> tuple[BaseProcess, int]:
    """Starts a server and waits for it."""
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        port = opened.getsockname()[1]
    process = multiprocessing.get_context("spawn").Process(target=target, args=(arguments[0], port, *arguments[1:]))
    process.start()
    while process.is_alive():
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            break
        except OSError:
            time.sleep(0.05)
    return process, port


def shown(found: list[float], seconds: float) -> str:
    milliseconds = 1000 * np.array(found)
    return (
        f"{len(found) / seconds:7.0f} requests/s, median {np.median(milliseconds):6.1f} ms, "
        f"99th percentile {np.percentile(milliseconds, 99):6.1f} ms"
    )


def measure_predictions(servers: dict[str, tuple[Any, int]], n_clients: int, rounds: int, seconds: float) -> None:
    asked, _ = rows(200, 2)
    requests = [[request("/predict", {"X": [row.tolist()]}) for row in asked] for _ in range(n_clients)]
    found: dict[str, list[float]] = {name: [] for name in servers}
    for _ in range(rounds):
        for name, (_, port) in servers.items():
            found[name] += load(port, requests, seconds)
    for name, each in found.items():
        print(f"{n_clients:3} clients, {name:8}", shown(each, rounds * seconds), flush=True)
    print(f"    batched against plain: {len(found['batched']) / len(found['plain']):.2f} times")


def measure_learning(port: int, n_clients: int, seconds: float) -> None:
    X, y = rows(2000, 3)
    teach = [request("/learn", {"X": [row.tolist()], "y": [int(k)]}) for row, k in zip(X, y, strict=True)]
    found = load(port, [teach[k::n_clients] for k in range(n_clients)], seconds)
    print(f"{n_clients:3} clients, learning", shown(found, seconds), flush=True)


def main() -> None:
    """Prints every comparison."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=3, help="turns of every server")
    parser.add_argument("--window", type=float, default=Limits().window, help="seconds a prediction waits for others")
    options = parser.parse_args()
    torch.set_num_threads(1)
    X, y = rows(5000, 1)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "model.cndpm"))
        model = CNDPMClassifier(random_state=0).fit(X, y)
        model.save(path)
        servers = {"plain": started(serve_plain, path), "batched": started(serve_batched, path, options.window)}
        try:
            for n_clients in (1, 32):
                measure_predictions(servers, n_clients, options.rounds, options.seconds)
            for n_clients in (1, 32):
                measure_learning(servers["batched"][1], n_clients, options.seconds)
        finally:
            for process, _ in servers.values():
                process.terminate()
                process.join()


if __name__ == "__main__":
    main()
