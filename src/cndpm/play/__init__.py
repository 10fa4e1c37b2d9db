"""A page to play with: one draws symbols and names them, and watches the mixture learn.

``cndpm play`` serves it; :class:`Sketchbook` is the model behind it.
"""

from cndpm.play.sketchbook import Sketchbook

__all__ = ["Sketchbook"]
