"""Every library of the comparison, at its defaults and tuned, by the name that the options take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from comparison import mgcv, own, splines, trees
from comparison.fitted import Fit, tuned


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


def _own(label: str, fit: Fit) -> Peer:
    return Peer(label, "ahofm_keras", fit, "ahofm_keras")


def _ebm(label: str, fit: Fit) -> Peer:
    return Peer(label, "interpret.glassbox", fit, "interpret-core")


def _boosting(label: str, fit: Fit) -> Peer:
    return Peer(label, "sklearn.ensemble", fit, "scikit-learn")


def _pygam(label: str, fit: Fit) -> Peer:
    return Peer(label, "pygam", fit, "pygam")


def _mgcv(label: str, fit: Fit) -> Peer:
    return Peer(label, "R", fit, "mgcv")


def _ridge(label: str, fit: Fit) -> Peer:
    return Peer(label, "sklearn.pipeline", fit, "scikit-learn")


def _glmgam(label: str, fit: Fit) -> Peer:
    return Peer(label, "statsmodels.gam.api", fit, "statsmodels")


PEERS = {
    "ours-d2": _own("ahofm_keras, D=2", own.pairs),
    "ours-d3": _own("ahofm_keras, D=3", own.triples),
    "ours-tuned": _own("ahofm_keras, tuned", tuned(own.ahofm, own.candidates)),
    "ebm": _ebm("EBM", trees.ebm),
    "ebm-4bags": _ebm("EBM, 4 bags", trees.ebm_some_bags),
    "ebm-tuned": _ebm("EBM, tuned", trees.ebm_tuned),
    "boosting": _boosting("histogram boosting", trees.boosting),
    "boosting-tuned": _boosting("histogram boosting, tuned", trees.boosting_tuned),
    "mgcv": _mgcv("mgcv", mgcv.default),
    "mgcv-tuned": _mgcv("mgcv, tuned", mgcv.chosen),
    "pygam": _pygam("pyGAM", splines.pygam),
    "pygam-tuned": _pygam("pyGAM, tuned", tuned(splines.pygam, splines.pygam_candidates)),
    "ridge": _ridge("splines + ridge", splines.ridge),
    "ridge-tuned": _ridge("splines + ridge, tuned", tuned(splines.ridge, splines.ridge_candidates)),
    "glmgam": _glmgam("GLMGam", splines.glmgam),
    "glmgam-tuned": _glmgam("GLMGam, tuned", tuned(splines.glmgam, splines.glmgam_candidates)),
}


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
