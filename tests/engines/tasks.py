"""Tasks that workers import."""

import os
import signal
from pathlib import Path


def double(task, attempt):
    """Says what it is about to do, and does it."""
    attempt.tell(f"doubling {task}")
    return 2 * task


def fail(task, attempt):
    raise ValueError(f"task {task} cannot be done")


def die_at_first(task, attempt):
    """Is killed the first `n` times that it is begun; then tells how often that was."""
    folder, n = task
    Path(folder, f"begun-{attempt.number}").touch()
    if attempt.number < n:
        os.kill(os.getpid(), signal.SIGKILL)
    return attempt.number


def stay(task, attempt):
    """Writes its process id to a file and stays."""
    import time

    Path(task).write_text(str(os.getpid()))
    time.sleep(600)


def wait_for_node(task, attempt):
    """Begins, tells so by a file, and waits until another file says go on; returns the attempt and the node."""
    import time

    import ray

    folder, name = task
    Path(folder, f"{name}-{attempt.number}").write_text(ray.get_runtime_context().get_node_id())
    while not Path(folder, f"go-on-{name}").exists():
        time.sleep(0.05)
    return attempt.number
