"""Every number that steers a correction, with the paper's presets."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, Self, get_args

from vsgraph.common.checks import check_at_least, check_fraction, check_number, check_one_of
from vsgraph.errors import InputError, is_meant

Form = Literal["released", "printed"]
Solver = Literal["optimum", "adam"]
Search = Literal["auto", "exact", "approximate"]
SEARCHES: tuple[str, ...] = get_args(Search)
FORMS: tuple[str, ...] = get_args(Form)
SOLVERS: tuple[str, ...] = get_args(Solver)
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
    """The numbers of a correction, with the paper's symbol where there is one.

    The defaults are what measured best on real label noise; :meth:`google_500`,
    :meth:`webvision_1000` and :meth:`nus_81_web` give the paper's.

    Attributes
    ----------
    n_neighbors : int
        Neighbors of an image in the visual graph (``k``).
    neighbor_search : {'auto', 'exact', 'approximate'}
        How neighbors are searched for; 'auto' is exact up to 100,000 images.
    neighbor_recall : float
        Share of the true neighbors that an approximate search must find.
    self_weight : float
        Share of an image itself when the graph is smoothed over (``w``).
    form : {'released', 'printed'}
        The graph network as the authors' code has it (row operator, ``[s ; S s]``, sigmoid) or as
        the equations are printed (symmetric operator, softmax).
    unit_features : bool
        Scale features to unit length before the graph network.
    anchors_per_class : int
        Images per class that the network learns from (``m``).
    gnn_layers : int
        Layers of the graph network (``L``).
    weight_decay : float
        How much large weights of the network are held back.
    solver : {'optimum', 'adam'}
        Train the network to the optimum of its loss, or by the paper's Adam loop.
    learning_rate, epochs, random_state
        Of the Adam loop: its step, its length and the seed of its first weights.
    rounds : int
        Rounds of progressive training; one is the paper's Algorithm 1.
    confidence_threshold : float
        From this score on the graph's label stands alone in Eq. 8 (``tau_f``).
    gnn_weight : float
        Share of the graph's label in the other rows of Eq. 8 (``lambda``).
    text_evidence : bool
        Weigh the graph, the CNN, the web label and the text of each image against each other
        (beyond the paper); otherwise Eq. 8 alone makes the final labels.
    relabel_threshold : float
        A new label needs this probability to replace the web label.
    drop_threshold : float
        With several labels per image, a web label is dropped only below this probability.
    reject_threshold : float
        An image can be rejected if the graph's score of its likeliest label is below this.
    reject_nearness : float
        And if the texts near it match that label by less than this share of what anchors' texts do.
    kept_scores : int
        How many of an image's highest scores are kept of each kind; of the rest, the sum.

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
        for name in (
            "n_neighbors",
            "anchors_per_class",
            "gnn_layers",
            "epochs",
            "rounds",
            "kept_scores",
        ):
            check_at_least(name, getattr(self, name), 1)
        for name in ("self_weight", "weight_decay", "random_state"):
            check_at_least(name, getattr(self, name), 0)
        for name in ("confidence_threshold", "gnn_weight", "relabel_threshold", "neighbor_recall"):
            check_fraction(name, getattr(self, name))
        for name in ("drop_threshold", "reject_threshold", "reject_nearness"):
            check_fraction(name, getattr(self, name))
        if not 0 < self.learning_rate < math.inf:
            raise InputError(f"learning_rate must be above 0 and finite, got {self.learning_rate}")
        check_one_of("form", self.form, FORMS)
        check_one_of("solver", self.solver, SOLVERS)
        check_one_of("neighbor_search", self.neighbor_search, SEARCHES)

    @classmethod
    def google_500(cls, **changes: Any) -> Self:  # noqa: ANN401
        """Return the numbers the paper gives for Google-500, with `changes` on top."""
        return cls(**(_PAPER | changes))

    @classmethod
    def webvision_1000(cls, **changes: Any) -> Self:  # noqa: ANN401
        """Return the paper's numbers for WebVision-1000; k and m are assumed (not printed)."""
        return cls(**(_PAPER | changes))

    @classmethod
    def nus_81_web(cls, **changes: Any) -> Self:  # noqa: ANN401
        """Return the paper's numbers for NUS-81-Web; tau_f, lambda and the form are assumed.

        The released form, since a softmax cannot give an image several labels.
        """
        numbers = {"n_neighbors": 10, "anchors_per_class": 50, "form": "released"}
        return cls(**(_PAPER | numbers | changes))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return settings from names, or the paper's symbols, and values; refuse other names.

        >>> Settings.from_dict({"n_neighbors": 7, "m": 10}).anchors_per_class
        10
        """
        return cls(**by_full_name(values))


def by_full_name(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by the full names of settings; refuse names that do not exist or come twice.

    >>> by_full_name({"k": 7, "rounds": 2})
    {'n_neighbors': 7, 'rounds': 2}
    """
    known = [field.name for field in dataclasses.fields(Settings)]
    unknown = sorted(set(values) - {*known, *SYMBOLS})
    if unknown:
        meant = is_meant(unknown[0], known)
        raise InputError(
            f"unknown settings: {', '.join(unknown)}; known: {sorted(known)}"
            + (f"; did you mean {meant}?" if meant else "")
        )
    twice = [name for symbol, name in SYMBOLS.items() if symbol in values and name in values]
    if twice:
        raise InputError(f"{twice[0]} is given twice, once by its symbol")
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
