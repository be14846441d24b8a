"""What all tests share: markers, and how many starts a fit has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ahofm_keras.model import starts

# Several fits are averaged unless a user says otherwise. One is enough for nearly every test, and takes
# a fraction of the time; tests that are marked `default_starts` have the shipped default.
SHIPPED_ROWS_OF_STARTS = starts.ROWS_OF_STARTS
starts.ROWS_OF_STARTS = 0

# Scripts that made stored figures import what the tests do not need.
collect_ignore = ["fixtures"]

# Files that fit many models, run pages or start processes; `make quick` leaves them out.
SLOW = """
decomposition/test_parts.py decomposition/test_purify.py decomposition/test_tensors.py
decomposition/test_uncertainty.py diagnostics/test_basis.py diagnostics/test_check.py
diagnostics/test_concurvity.py diagnostics/test_residuals.py diagnostics/test_tensors.py
docs/test_docs.py examples/test_gallery.py examples/test_kinds.py examples/test_large.py
examples/test_noise.py examples/test_pairs.py examples/test_paper.py examples/test_rank.py
families/test_glm.py families/test_own_family.py formula/test_fuzz.py formula/test_limits.py
formula/test_patsy.py model/test_again.py model/test_averaging.py model/test_callbacks.py
model/test_closed_form.py model/test_conformal.py model/test_damaged_files.py model/test_deep.py
model/test_default_starts.py model/test_evaluate.py model/test_fit.py model/test_fixed_shape.py
model/test_intercept_only.py model/test_intervals.py model/test_missing_served.py
model/test_new_levels.py model/test_odd_input.py model/test_predict.py model/test_properties.py
model/test_record.py model/test_saving.py model/test_solver_choice.py model/test_two_predictors.py
model/test_weights.py plotting/test_check.py plotting/test_crowded.py plotting/test_effects.py
plotting/test_page.py plotting/test_tensors.py plotting/test_views.py reporting/test_arithmetic.py
reporting/test_browser.py reporting/test_contents.py reporting/test_crowded.py
reporting/test_page.py solvers/test_bcd.py solvers/test_coverage.py solvers/test_edf_penalty.py
solvers/test_engine.py solvers/test_growing.py solvers/test_hard_data.py solvers/test_interrupts.py
solvers/test_kernels.py solvers/test_laplace.py solvers/test_posterior.py
solvers/test_rare_levels.py solvers/test_smoothing_uncertainty.py solvers/test_tensor.py
solvers/test_units.py solvers/test_variational.py summaries/test_coefficients.py
summaries/test_tensors.py summaries/test_wald.py terms/test_registered.py test_interaction_bases.py
test_lazy_import.py test_margins.py test_quiet.py test_readme.py test_refinement.py
test_tensor_terms.py
""".split()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of slow files, and those that have the shipped number of starts."""
    slow = {Path(__file__).parent / name for name in SLOW}
    for item in items:
        if item.path in slow:
            item.add_marker("slow")
        if "shipped_starts" in getattr(item, "fixturenames", ()):
            item.add_marker("default_starts")


@pytest.fixture(scope="module")
def shipped_starts() -> Iterator[None]:
    """Fits are averaged as they are for users, in all tests of the module."""
    starts.ROWS_OF_STARTS = SHIPPED_ROWS_OF_STARTS
    yield
    starts.ROWS_OF_STARTS = 0
