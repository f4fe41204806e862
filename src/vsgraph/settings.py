"""All settings of a correction, with the paper's presets."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, Self, get_args

from vsgraph.common.checks import (
    check_at_least,
    check_fraction,
    check_known,
    check_number,
    check_one_of,
)
from vsgraph.errors import InputError

Form = Literal["released", "printed"]
Solver = Literal["optimum", "adam"]
Search = Literal["auto", "exact", "approximate"]
SEARCHES: tuple[str, ...] = get_args(Search)
FORMS: tuple[str, ...] = get_args(Form)
SOLVERS: tuple[str, ...] = get_args(Solver)
COUNTS = ("n_neighbors", "anchors_per_class", "gnn_layers", "epochs", "rounds", "kept_scores")
FRACTIONS = (
    "confidence_threshold", "gnn_weight", "relabel_threshold", "neighbor_recall", "drop_threshold",
    "reject_threshold", "reject_nearness", "purity",
)  # fmt: skip
SYMBOLS = {
    "k": "n_neighbors",
    "w": "self_weight",
    "m": "anchors_per_class",
    "L": "gnn_layers",
    "tau_f": "confidence_threshold",
    "lambda": "gnn_weight",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a correction; the paper's symbols are in parentheses.

    The defaults measured best on real label noise. :meth:`google_500`, :meth:`webvision_1000` and
    :meth:`nus_81_web` return the paper's settings.

    Attributes
    ----------
    n_neighbors : int
        Neighbors of an image in the visual graph (``k``).
    neighbor_search : {'auto', 'exact', 'approximate'}
        How to search for neighbors; 'auto' is exact up to 100,000 images.
    neighbor_recall : float
        Share of the true neighbors that an approximate search must find.
    self_weight : float
        Weight of an image itself in smoothing over the graph (``w``).
    form : {'released', 'printed'}
        The graph network of the authors' code (row operator, ``[s ; S s]``, sigmoid) or of the
        printed equations (symmetric operator, softmax).
    unit_features : bool
        Scale features to unit length before the graph network.
    anchors_per_class : int
        Images per class that the network learns from (``m``), at most half of a small class.
    gnn_layers : int
        Layers of the graph network (``L``).
    weight_decay : float
        Penalty on large weights of the network.
    solver : {'optimum', 'adam'}
        Train the network to the optimum of its loss, or with the paper's Adam loop.
    learning_rate, epochs, random_state
        Step, length and seed of the Adam loop.
    rounds : int
        Rounds of progressive training; one is the paper's Algorithm 1.
    confidence_threshold : float
        From this score on, Eq. 8 uses only the graph's label (``tau_f``).
    gnn_weight : float
        Weight of the graph's label in the other rows of Eq. 8 (``lambda``).
    text_evidence : bool
        Weigh the graph, the CNN, the web label and the text of each image against each other
        (beyond the paper). If false, only Eq. 8 makes the final labels.
    purity : float
        Wanted share of right labels among those kept or relabeled, by estimate. Higher rejects
        more.
    relabel_threshold : float
        Probability that a new label needs to replace the web label. This and the next three count
        in the paper's forms and with several labels per image.
    drop_threshold : float
        With several labels per image, a web label is dropped only below this probability.
    reject_threshold : float
        An image is rejected only if the graph's score of its likeliest label is below this.
    reject_nearness : float
        It is also rejected only if the texts near it match that label by less than this share of
        the match of its anchors' texts.
    kept_scores : int
        Number of highest scores of each kind that are kept for an image; the rest is summed.

    Examples
    --------
    >>> Settings(n_neighbors=10).n_neighbors
    10
    >>> Settings.nus_81_web().anchors_per_class
    50
    """

    n_neighbors: int = 5  # k
    neighbor_search: Search = "auto"
    neighbor_recall: float = 0.99
    self_weight: float = 0.0  # w
    form: Form = "released"
    unit_features: bool = True
    anchors_per_class: int = 50  # m
    gnn_layers: int = 1  # L
    weight_decay: float = 1e-3
    solver: Solver = "optimum"
    learning_rate: float = 0.01
    epochs: int = 500
    random_state: int = 0
    rounds: int = 1
    confidence_threshold: float = 0.7  # tau_f
    gnn_weight: float = 0.5  # lambda
    text_evidence: bool = True
    purity: float = 0.93
    relabel_threshold: float = 0.5
    drop_threshold: float = 0.05
    reject_threshold: float = 0.7
    reject_nearness: float = 0.5
    kept_scores: int = 32

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if field.type in {int, float}:
                number = check_number(field.name, getattr(self, field.name), field.type)
                object.__setattr__(self, field.name, number)
        for name in COUNTS:
            check_at_least(name, getattr(self, name), 1)
        for name in ("self_weight", "weight_decay", "random_state"):
            check_at_least(name, getattr(self, name), 0)
        for name in FRACTIONS:
            check_fraction(name, getattr(self, name))
        if not 0 < self.learning_rate < math.inf:
            raise InputError(f"learning_rate must be above 0 and finite, got {self.learning_rate}")
        check_one_of("form", self.form, FORMS)
        check_one_of("solver", self.solver, SOLVERS)
        check_one_of("neighbor_search", self.neighbor_search, SEARCHES)

    @classmethod
    def google_500(cls, **changes: Any) -> Self:  # noqa: ANN401
        """Return the paper's settings for Google-500, with `changes`."""
        return cls(**(_PAPER | changes))

    @classmethod
    def webvision_1000(cls, **changes: Any) -> Self:  # noqa: ANN401
        """Return the paper's settings for WebVision-1000; k and m are assumed (not printed)."""
        return cls.google_500(**changes)

    @classmethod
    def nus_81_web(cls, **changes: Any) -> Self:  # noqa: ANN401
        """Return the paper's settings for NUS-81-Web; tau_f, lambda and the form are assumed.

        The form is the released one, since a softmax cannot give an image several labels.
        """
        own = {"n_neighbors": 10, "anchors_per_class": 50, "form": "released"}
        return cls.google_500(**(own | changes))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return settings from values by name or by the paper's symbol; other names are errors.

        >>> Settings.from_dict({"n_neighbors": 7, "m": 10}).anchors_per_class
        10
        """
        return cls(**by_full_name(values))


def by_full_name(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by the full names of settings; unknown and repeated names are errors.

    >>> by_full_name({"k": 7, "rounds": 2})
    {'n_neighbors': 7, 'rounds': 2}
    """
    check_known(
        "setting", set(values) - set(SYMBOLS), [f.name for f in dataclasses.fields(Settings)]
    )
    twice = [name for symbol, name in SYMBOLS.items() if symbol in values and name in values]
    if twice:
        raise InputError(f"{twice[0]} is given twice, by its name and by its symbol")
    return {SYMBOLS.get(name, name): value for name, value in values.items()}


_PAPER: dict[str, Any] = {
    "n_neighbors": 5,
    "self_weight": 0.0,
    "form": "printed",
    "unit_features": False,
    "anchors_per_class": 10,
    "gnn_layers": 1,
    "solver": "adam",
    "learning_rate": 0.1,
    "epochs": 5000,
    "weight_decay": 1e-6,
    "confidence_threshold": 0.7,
    "gnn_weight": 0.5,
    "text_evidence": False,
}
