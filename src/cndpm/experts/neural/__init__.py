"""Neural experts: densities and predictors trained by gradient, and the bank that evaluates them at once.

What others make of it is imported when it is first asked for: rows need none of it.
"""

from typing import TYPE_CHECKING, Literal

from cndpm.lazy import lazily

LikelihoodName = Literal["bernoulli", "unit-gaussian", "gaussian", "pixel-gaussian", "logistic"]
"""Names of the distributions of x given a network's output."""

if TYPE_CHECKING:
    from cndpm.experts.neural.autoregressive import AutoregressiveDensity as AutoregressiveDensity
    from cndpm.experts.neural.lateral import LateralCNN as LateralCNN
    from cndpm.experts.neural.lateral import LateralResNet as LateralResNet
    from cndpm.experts.neural.lateral import mirrored_decoder as mirrored_decoder
    from cndpm.experts.neural.lateral_predictors import AveragedPredictor as AveragedPredictor
    from cndpm.experts.neural.lateral_predictors import Classifier as Classifier
    from cndpm.experts.neural.lateral_predictors import Regressor as Regressor
    from cndpm.experts.neural.lesson import LessonSchedule as LessonSchedule
    from cndpm.experts.neural.neural_bank import NeuralBank as NeuralBank
    from cndpm.experts.neural.neural_expert import PartTraining as PartTraining
    from cndpm.experts.neural.parts import Density as Density
    from cndpm.experts.neural.parts import DensityMaker as DensityMaker
    from cndpm.experts.neural.parts import NoDensity as NoDensity
    from cndpm.experts.neural.parts import Predictor as Predictor
    from cndpm.experts.neural.parts import PredictorMaker as PredictorMaker
    from cndpm.experts.neural.pixels import BernoulliPixel as BernoulliPixel
    from cndpm.experts.neural.pixels import LogisticPixel as LogisticPixel
    from cndpm.experts.neural.pixels import Pixel as Pixel
    from cndpm.experts.neural.vae import VAE as VAE

__getattr__ = lazily(__name__)
