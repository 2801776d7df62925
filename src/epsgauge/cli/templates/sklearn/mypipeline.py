"""The data to audit a scikit-learn classifier with: arrays of equal length. The classifier is named in plan.toml."""

from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale


def data():
    measurements, labels = load_breast_cancer(return_X_y=True)
    return scale(measurements), labels
