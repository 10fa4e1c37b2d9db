"""Tables that do not change, beside models for them: ``python -m benchmarks.tables`` prints accuracies in per cent.

Five folds in random order, scikit-learn's own data, all models with their defaults (naive Bayes and forests need no
scaling; nor does cndpm).
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB

from cndpm import CNDPMClassifier

TABLES = {
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "made, 5 classes of 2 clusters": lambda: make_classification(
        2000, 12, n_informative=8, n_classes=5, n_clusters_per_class=2, random_state=0
    ),
}
MODELS = {
    "cndpm": lambda: CNDPMClassifier(random_state=0),
    "gradient boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "forest": lambda: RandomForestClassifier(random_state=0),
    "naive Bayes": GaussianNB,
}


def main() -> None:
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for table, load in TABLES.items():
        X, y = load()
        for name, make_model in MODELS.items():
            scores = 100 * cross_val_score(make_model(), X, y, cv=folds)
            print(
                f"{table:30} {name:18} {np.mean(scores):6.2f} ± {np.std(scores) / np.sqrt(len(scores)):.2f}", flush=True
            )


if __name__ == "__main__":
    main()
