"""Summaries of models with several predictors: a section each, figures of the fit once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import ahofm_keras as ak
from ahofm_keras.summaries.tables import WIDTH
from ahofm_keras.texts import text_width
from tests.several import several_frame, several_model


@pytest.fixture(scope="module")
def found() -> ak.Summary:
    return ak.summary(several_model())


def test_a_section_per_parameter_and_one_line_for_a_constant(found: ak.Summary) -> None:
    """Figures depend on the machine's arithmetic, their places do not."""
    words = (
        "---",
        "Parametric",
        "Linear",
        "Smooth",
        "Interactions",
        "Constant",
        "~",
        "y ~",
        "student",
        "log-",
    )
    shown = [line for line in str(found).splitlines() if line.startswith(words)]
    assert [line.split(" ---")[0].partition("-log")[0] for line in shown[:-1]] == [
        "student_t, n = 400",
        "--- loc (identity link)",
        "y ~ group + ahofm(x, z, D=2, F=1, k=8)",
        "Parametric coefficients",
        "Linear terms",
        "Smooth terms",
        "Interactions, by order",
        "--- scale (log link)",
        "~ s(z, k=8) + group + x",
        "Parametric coefficients",
        "Linear terms",
        "Smooth terms",
        "Constant parameters",
    ]  # fmt: skip
    assert shown[-1].startswith("log-likelihood")
    assert str(found).count("variational: ") == 1
    for word in ("dispersion", "deviance explained"):
        assert word not in str(found)


def test_a_constant_is_told_in_its_own_units(found: ak.Summary) -> None:
    row = found.coefficients.loc[("df", "(Intercept)")]
    reach = stats.norm.ppf(0.975) * row.se
    expected = [2 + np.exp(row.estimate + end) for end in (0, -reach, reach)]
    np.testing.assert_allclose(found.constants.loc["df"], expected)
    value, low, high = (f"{own:.4g}" for own in expected)
    line = next(line for line in str(found).splitlines() if line.startswith("df"))
    assert line.split() == ["df", value, f"[{low},", f"{high}]"]


def test_lines_are_no_longer_than_the_page(found: ak.Summary) -> None:
    assert max(map(text_width, str(found).splitlines())) <= WIDTH


def test_frames_of_all_parameters(found: ak.Summary) -> None:
    assert found.coefficients.index.names == ["parameter", "coefficient"]
    assert found.terms.loc["scale"].index.tolist() == ["s(z)", "group", "x"]
    own = ak.summary(several_model(), "scale")
    assert own.terms["edf"].tolist() == found.terms.loc["scale", "edf"].tolist()
    assert found.figures["deviance_explained"] is None
    edf = found.terms["edf"].sum() + 3  # and the intercepts
    assert edf == pytest.approx(found.figures["edf"])


def test_one_parameter_alone(found: ak.Summary) -> None:
    text = str(ak.summary(several_model(), "sigma"))
    assert "--- scale (log link)" in text
    assert "loc" not in text
    assert "Constant parameters" in str(ak.summary(several_model(), "df"))


def test_html_has_the_same_sections(found: ak.Summary) -> None:
    page = found._repr_html_()
    for title in ("loc (identity link)", "scale (log link)", "Constant parameters"):
        assert f"<b>{title}</b>" in page


def test_without_a_posterior_there_is_no_interval() -> None:
    frame = several_frame()
    model = ak.AdditiveModel({"loc": "y ~ x", "scale": "~ 1"}, frame)
    model.predictors["scale"].trainable_weights[0].assign(0.5)
    assert not model.has_posterior
    assert np.isnan(ak.summary(model).constants.loc["scale", "lower"])
    assert "not known" in str(ak.summary(model))
