"""The predictors of neural experts."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from cndpm.experts.neural.lateral_predictors import Classifier, Regressor
from cndpm.experts.neural.parts import Predictor, PredictorMaker
from cndpm.model.settings.architecture import PlainNetworks, ShapedNetworks
from cndpm.model.settings.facts import CustomPredictor, Facts
from cndpm.model.settings.import_paths import ImportPath, imported
from cndpm.model.settings.section import Section


class NetworkPredictor(Section):
    """Chooses a network of the chosen architecture, for class labels or real values."""

    kind: Literal["network"] = Field(default="network", description="a network of the chosen architecture")
    temperature: float = Field(default=0.01, gt=0, description="of the predictor, in the value that routing sees")
    unseen_probability: float = Field(
        default=1e-3, gt=0, lt=1, description="of all classes an expert has never seen, where classes are discovered"
    )

    def maker(self, facts: Facts, networks: ShapedNetworks, *, closed: bool) -> PredictorMaker:
        """Returns a function that makes the predictor of an expert."""

        def make(*, first: bool, lateral_widths: tuple[int, ...], n_classes: int) -> Predictor:
            column: dict[str, Any] = {
                "lateral_widths": lateral_widths,
                "trunk": networks.trunk(facts.input_shape, lateral_widths, first=first),
                "temperature": self.temperature,
            }
            if isinstance(networks, PlainNetworks):
                column["hidden"] = networks.widths(first=first)
            if facts.target == "values":
                return Regressor(facts.input_shape, facts.n_outputs, **column)
            unseen = self.unseen_probability
            return Classifier(facts.input_shape, n_classes, unseen_probability=unseen, closed=closed, **column)

        return make


class OwnPredictor(Section):
    """Names a predictor of one's own; nothing is imported before it is needed."""

    bare: ClassVar[str] = "predictor_class"

    kind: Literal["own"] = Field(default="own", description="a class of one's own; its import path may stand alone")
    predictor_class: ImportPath = Field(
        description="package.module:Class, called with input_shape, n_outputs, lateral_widths, that makes a Predictor"
    )

    def maker(self, facts: Facts, networks: ShapedNetworks, *, closed: bool) -> PredictorMaker:
        """Returns a function that makes the predictor of an expert."""
        return predictor_maker_of(imported(self.predictor_class, "predictor_class"), facts)


def predictor_maker_of(predictor: CustomPredictor, facts: Facts) -> PredictorMaker:
    """Returns a function that makes predictors of a class."""

    def make(*, lateral_widths: tuple[int, ...], n_classes: int, **_: Any) -> Predictor:
        n_outputs = n_classes if facts.target == "classes" else facts.n_outputs
        return predictor(facts.input_shape, n_outputs, lateral_widths=lateral_widths)

    return make
