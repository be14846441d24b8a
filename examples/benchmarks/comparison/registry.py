"""Every library of the comparison, at its defaults and tuned, by the name that the options take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

from comparison import boosted, mgcv, own, splines, trees
from comparison.fitted import Fit, constant, log_score_of, truth, tuned


@dataclass(frozen=True)
class Peer:
    """A library with a setting.

    Args:
        label: of the tables.
        module: imported before the clock starts; "R" for mgcv.
        fit: fits the training rows of a split.
        package: whose version is noted.
    """

    label: str
    module: str
    fit: Fit
    package: str

    @property
    def installed(self) -> bool:
        if self.module == "R":
            return mgcv.installed()
        return find_spec(self.module.partition(".")[0]) is not None


# By library: what is imported before the clock starts, the package whose version is noted, and its
# settings with their labels.
_LIBRARIES: dict[tuple[str, str], dict[str, tuple[str, Fit]]] = {
    # With TensorFlow, which the package itself imports when a model is made.
    ("ahofm_keras.model", "ahofm_keras"): {
        "ours-d2": ("ahofm_keras, D=2", partial(own.ahofm, order=2)),
        "ours-d3": ("ahofm_keras, D=3", partial(own.ahofm, order=3)),
        "ours-tuned": ("ahofm_keras, tuned", tuned(own.ahofm, own.candidates)),
        "single-d2": ("ahofm_keras, D=2, one start", partial(own.ahofm, order=2, single=True)),
        "ours-ls": ("ahofm_keras, D=2, scale", partial(own.distributional, family="gaussian_ls")),
        "ours-ls-d3": (
            "ahofm_keras, D=3, scale",
            partial(own.distributional, family="gaussian_ls", order=3),
        ),
        "ours-t": ("ahofm_keras, D=2, t, scale", partial(own.distributional, family="student_t")),
        "single-d3": ("ahofm_keras, D=3, one start", partial(own.ahofm, order=3, single=True)),
    },
    ("interpret.glassbox", "interpret-core"): {
        "ebm": ("EBM", trees.ebm),
        "ebm-4bags": ("EBM, 4 bags", trees.ebm_some_bags),
        "ebm-tuned": ("EBM, tuned", trees.ebm_tuned),
    },
    ("sklearn.ensemble", "scikit-learn"): {
        "boosting": ("histogram boosting", trees.boosting),
        "boosting-tuned": ("histogram boosting, tuned", trees.boosting_tuned),
    },
    ("lightgbm", "lightgbm"): {"lightgbm": ("LightGBM", trees.lightgbm)},
    ("R", "mgcv"): {
        "mgcv": ("mgcv", mgcv.default),
        "mgcv-tuned": ("mgcv, tuned", mgcv.chosen),
        "bam": ("bam, all pairs", mgcv.all_pairs),
        "mgcv-gaulss": ("mgcv, gaulss, tuned", partial(mgcv.chosen, calls_of=mgcv.location_scale_calls)),
        "mgcv-scat": ("mgcv, scat, tuned", partial(mgcv.chosen, calls_of=mgcv.heavy_tails_calls)),
        "bam-discrete": ("bam, all pairs, discrete", partial(mgcv.all_pairs, discrete=True)),
    },
    ("pygam", "pygam"): {
        "pygam": ("pyGAM", splines.pygam),
        "pygam-tuned": ("pyGAM, tuned", tuned(splines.pygam, splines.pygam_candidates)),
    },
    ("sklearn.pipeline", "scikit-learn"): {
        "ridge": ("splines + ridge", splines.ridge),
        "ridge-tuned": ("splines + ridge, tuned", tuned(splines.ridge, splines.ridge_candidates)),
    },
    ("statsmodels.gam.api", "statsmodels"): {
        "glmgam": ("GLMGam", splines.glmgam),
        "glmgam-tuned": ("GLMGam, tuned", tuned(splines.glmgam, splines.glmgam_candidates)),
    },
    ("ngboost", "ngboost"): {
        "ngboost": ("NGBoost", boosted.ngboost),
        "ngboost-tuned": ("NGBoost, tuned", tuned(boosted.ngboost, boosted.candidates, log_score_of)),
    },
    ("numpy", "numpy"): {
        "mean": ("no model: the mean", constant),
        "truth": ("the truth", truth),
    },
}
PEERS = {
    name: Peer(label, module, fit, package)
    for (module, package), settings in _LIBRARIES.items()
    for name, (label, fit) in settings.items()
}
# These are asked for by the benchmarks that have questions of their own.
_OTHERS = (
    "single-d2 single-d3 ours-ls ours-ls-d3 ours-t mgcv-gaulss mgcv-scat ngboost ngboost-tuned lightgbm "
    "bam bam-discrete truth"
).split()
# The libraries of peers.py.
COMPARED = [name for name in PEERS if name not in _OTHERS]


def select(names: Sequence[str]) -> list[str]:
    """Names of peers; `ours` stands for all that start so.

    Raises:
        ValueError: for a name that is none.
    """
    chosen: list[str] = []
    for name in names:
        found = [name] if name in PEERS else [key for key in PEERS if key.startswith(f"{name}-")]
        if not found:
            raise ValueError(f"Unknown peer `{name}`. Known: {', '.join(PEERS)}, ours.")
        chosen += [key for key in found if key not in chosen]
    return chosen
