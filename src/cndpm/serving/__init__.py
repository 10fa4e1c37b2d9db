"""Serving: a model behind HTTP that learns while it answers, and loses nothing that it has acknowledged.

from cndpm.serving import Server

Server("model.cndpm").run()  # the same as: cndpm serve model.cndpm
"""

from cndpm.extras import require_extra

require_extra("fastapi", "prometheus_client", "uvicorn", "filelock", purpose="cndpm.serving")

from cndpm.serving.app import create_app
from cndpm.serving.limits import Limits
from cndpm.serving.server import Server
from cndpm.serving.store import Store, StoreError

__all__ = ["Limits", "Server", "Store", "StoreError", "create_app"]
