"""The tables of a summary as text and as HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape
from typing import Any

import pandas as pd

from ahofm_keras.summaries.figures import Figures
from ahofm_keras.summaries.sections import Section
from ahofm_keras.summaries.tables import WIDTH, Table
from ahofm_keras.texts import p_value, plain, short, short_range
from ahofm_keras.texts import table_number as number
from ahofm_keras.texts import table_percent as percent

_PRUNED = "pruned"
_UNKNOWN = "not known"
# Shares that add up to something this far from 1 have covariances worth a word.
_COVARY = 0.005
# Degrees of freedom of atoms below which they say nothing.
_ATOMS_OFF = 0.05
_UNITS = {"variational": "sweeps", "bcd": "sweeps", "adam": "epochs", "hybrid": "epochs"}


def page_text(sections: Sequence[Section], figures: Figures) -> str:
    """All of it for a terminal of 100 columns."""
    parts = []
    for place, section in enumerate(sections):
        tables = [table.to_text() for table in _tables(section, figures)]
        formula, rule = _wrapped(plain(section.formula)), _rule(section)
        if section.parameter is None:
            parts += [f"{formula}\n{_head(section, figures)}", *tables]
        else:
            parts += [] if place else [_head(section, figures)]
            parts += [f"{rule}\n{formula}", *tables] if section.constant is None else []
    constants = _constant_table(sections)
    parts += [constants.to_text()] if constants.rows else []
    parts.append("\n".join(map(_wrapped, _lines(figures))))
    notes = _notes(sections, figures)
    parts += ["\n".join(_wrapped(f"- {plain(line)}", "  ") for line in notes)]
    return "\n\n".join(filter(None, parts))


def page_html(sections: Sequence[Section], figures: Figures) -> str:
    """All of it for a notebook."""
    parts = []
    for place, section in enumerate(sections):
        tables = [table.to_html() for table in _tables(section, figures)]
        formula, head = escape(section.formula), escape(_head(section, figures))
        if section.parameter is None:
            parts += [f"<p><code>{formula}</code><br>{head}</p>", *tables]
        else:
            parts += [] if place else [f"<p>{head}</p>"]
            title = f"<p><b>{escape(_title(section))}</b><br><code>{formula}</code></p>"
            parts += [title, *tables] if section.constant is None else []
    constants = _constant_table(sections)
    parts += [constants.to_html()] if constants.rows else []
    parts.append(f"<p>{'<br>'.join(map(escape, _lines(figures)))}</p>")
    notes = "".join(f"<li>{escape(note)}</li>" for note in _notes(sections, figures))
    return "<div>" + "".join(parts) + (f"<ul>{notes}</ul>" if notes else "") + "</div>"


def _head(section: Section, figures: Figures) -> str:
    link = f"({section.link})" if section.parameter is None else ""
    classes = (" < " if figures["ordered"] else ", ").join(figures["classes"])
    told = f", classes {classes}" if classes else ""
    return f"{figures['family']}{link}, n = {_known(figures['rows'], ',')}{told}"


def _title(section: Section) -> str:
    return f"{section.parameter} ({section.link})"


def _rule(section: Section) -> str:
    """The title of a section in a line across the page."""
    title = f"--- {_title(section)} "
    return title + "-" * (WIDTH - len(title))


def _tables(section: Section, figures: Figures) -> list[Table]:
    coefficients, terms = section.coefficients, section.terms
    tables = [_coefficient_table(coefficients, figures)] if len(coefficients) else []
    makers = {
        "linear": _linear_table,
        "smooth": _smooth_table,
        "tensor": _tensor_table,
        "interaction": _interaction_table,
        "network": _network_table,
    }
    for kind, make in makers.items():
        own = terms[terms["kind"] == kind]
        if len(own):
            tables.append(make(own, figures))
    is_shrunken = terms["columns"].notna()
    if is_shrunken.any():
        tables.append(_shrunken_table(terms[is_shrunken], figures))
    others = terms[~(terms["kind"].isin(list(makers)) | is_shrunken)]
    return [*tables, _other_table(others, figures)] if len(others) else tables


def _constant_table(sections: Sequence[Section]) -> Table:
    """Parameters without terms in their own units."""
    rows = []
    for section in sections:
        if section.constant is not None:
            value, low, high = (number(own) for own in section.constant)
            known = section.constant[1] == section.constant[1]
            rows.append((str(section.parameter), value, f"[{low}, {high}]" if known else _UNKNOWN))
    return Table("Constant parameters", ("", "estimate", "95 % interval"), tuple(rows))


def _coefficient_table(frame: pd.DataFrame, figures: Figures) -> Table:
    letter = "z" if figures["dispersion_known"] else "t"
    rows = [
        (
            label,
            number(row.estimate, 5),
            number(row.se),
            number(row.statistic),
            p_value(row.p_value),
        )
        for label, row in _rows(frame)
    ]
    head = ("", "estimate", "std. error", f"{letter} value", "p-value")
    return Table("Parametric coefficients", head, tuple(rows))


def _linear_table(frame: pd.DataFrame, figures: Figures) -> Table:
    rows = [
        (label, short(row.ref_df), percent(row.share), *_test(row, figures))
        for label, row in _rows(frame)
    ]
    return Table("Linear terms", ("", "df", "share", *_test_head(figures)), tuple(rows))


def _smooth_table(frame: pd.DataFrame, figures: Figures) -> Table:
    rows = [
        (
            label,
            str(row.k_max),
            short(row.df_max),
            _edf(row),
            short(row.lambda_asked_max),
            short(row.lambda_max),
            percent(row.share),
            *_test(row, figures),
        )
        for label, row in _rows(frame)
    ]
    head = ("", "k", "df", "edf", "lambda asked", "reached", "share", *_test_head(figures))
    return Table("Smooth terms", head, tuple(rows))


def _tensor_table(frame: pd.DataFrame, figures: Figures) -> Table:
    rows = [
        (
            label,
            _each(row.k_by_margin),
            _each(row.df_by_margin),
            _edf(row),
            _each(row.lambda_by_margin, 2),
            percent(row.share),
            *_test(row, figures),
        )
        for label, row in _rows(frame)
    ]
    head = ("", "k", "df", "edf", "lambda", "share", *_test_head(figures))
    return Table("Tensor products", head, tuple(rows))


def _shrunken_table(frame: pd.DataFrame, figures: Figures) -> Table:
    rows = [
        (
            label,
            f"{row.nonzero}/{row.columns}",
            _edf(row),
            short(row.lambda_asked_max),
            "" if row.lambda_max != row.lambda_max else short(row.lambda_max),
            percent(row.share),
            *_test(row, figures),
        )
        for label, row in _rows(frame)
    ]
    head = ("", "not 0", "edf", "lambda asked", "reached", "share", *_test_head(figures))
    return Table("Penalised linear terms", head, tuple(rows))


def _network_table(frame: pd.DataFrame, figures: Figures) -> Table:
    """Networks have a share, and no test."""
    rows = [(label, str(row.order), percent(row.share)) for label, row in _rows(frame)]
    return Table("Networks", ("", "features", "share"), tuple(rows))


def _other_table(frame: pd.DataFrame, figures: Figures) -> Table:
    """Terms of kinds that were registered."""
    rows = [
        (
            label,
            str(row.kind),
            _edf(row),
            _each(row.lambda_by_margin, 2),
            percent(row.share),
            *_test(row, figures),
        )
        for label, row in _rows(frame)
    ]
    return Table(
        "Other terms", ("", "kind", "edf", "lambda", "share", *_test_head(figures)), tuple(rows)
    )


def _each(values: Any, digits: int = 3) -> str:
    """A figure for each margin, or one where they all look the same; empty where they are not known."""
    if not isinstance(values, tuple):
        return ""
    shown = [short(value, digits) for value in values]
    return shown[0] if len(set(shown)) == 1 else ", ".join(shown)


def _interaction_table(frame: pd.DataFrame, figures: Figures) -> Table:
    rows = [
        (
            label,
            short_range(row.k_min, row.k_max, 3),
            short_range(row.df_min, row.df_max, 2),
            str(row.factors) if pd.isna(row.factors_asked) else f"{row.factors}/{row.factors_asked}",
            f"{row.features}/{row.features_asked}",
            _edf(row),
            short_range(row.lambda_min, row.lambda_max, 2),
            percent(row.share),
            *_test(row, figures),
        )
        for label, row in _rows(frame)
    ]
    head = ("", "k", "df", "factors", "features", "edf", "lambda", "share", *_test_head(figures))
    return Table("Interactions, by order", head, tuple(rows))


def _rows(frame: pd.DataFrame) -> list[tuple[str, Any]]:
    """Label and figures of each row."""
    return [(str(row[0]), row) for row in frame.itertuples()]


def _edf(row: Any) -> str:
    return "" if row.edf != row.edf else f"{row.edf:.2f}"


def _test_head(figures: Figures) -> tuple[str, str]:
    return "chi.sq" if figures["dispersion_known"] else "F", "p-value"


def _test(row: Any, figures: Figures) -> tuple[str, str]:
    if row.pruned:
        return "", _PRUNED
    if row.statistic != row.statistic:
        return "", ""
    statistic = row.statistic if figures["dispersion_known"] else row.statistic / row.ref_df
    return number(statistic), p_value(row.p_value)


def _lines(figures: Figures) -> list[str]:
    """What there is to say of the fit as a whole."""
    explained, dispersion = figures["deviance_explained"], _figure(figures["dispersion"])
    fit = [
        f"deviance explained {_UNKNOWN if explained is None else percent(explained)}",
        f"log-likelihood {_figure(figures['log_likelihood'], 6)}",
        f"AIC {_figure(figures['aic'], 6)}",
        f"edf {_figure(figures['edf'])}",
        f"dispersion {'1 (known)' if figures['dispersion_known'] else dispersion}",
    ]
    # Where parameters have predictors of their own there is no deviance to explain, nor a dispersion.
    return [", ".join(fit[1:-1] if figures["several"] else fit), _solver_line(figures)]


def _solver_line(figures: Figures) -> str:
    solver = figures["solver"]
    if solver is None:
        return f"solver {_UNKNOWN}"
    took = f"{figures['epochs']} {_UNITS.get(solver, 'epochs')} in {figures['seconds']:.1f} s"
    return f"{solver}: {took}, {'converged' if figures['converged'] else 'did NOT converge'}"


def _notes(sections: Sequence[Section], figures: Figures) -> list[str]:
    """What a reader must know of the tables."""
    terms = pd.concat([section.terms for section in sections])
    notes = [f"warning of the fit: {' '.join(text.split())}" for text in figures["warnings"]]
    if not figures["posterior"]:
        notes.append(
            "The model has no posterior, so there are no standard errors, edf and p-values. Fit "
            "it on a data frame, not on a dataset, with the family's own loss."
        )
    elif (terms["kind"] != "linear").any():
        text = "p-values are approximate: they take the smoothing as given"
        if (terms["kind"] == "interaction").any():
            text += ", those of interactions also the chosen factors"
        notes.append(text + ".")
    if (terms["columns"].notna() & ~terms["pruned"] & terms["statistic"].isna()).any():
        notes.append(
            "a lasso has no test: it would take as given which coefficients are not 0, which the same "
            "data chose."
        )
    if figures["networks"]:
        notes.append(
            "edf, standard errors and p-values are those of the other terms, given the networks: there "
            "is no AIC."
        )
    if terms["pruned"].any():
        notes.append("pruned: the fit switched the term off, the data does not ask for it.")
    for section in sections:
        notes += [f"{section.heading}{text}" for text in _section_notes(section)]
    if figures["weighted"]:
        notes.append("rows had weights.")
    return notes


def _section_notes(section: Section) -> list[str]:
    """What a reader must know of the tables of one predictor."""
    notes = []
    for label, order in section.orders.items():
        reached = f"there are interactions up to order {order}" if order > 1 else "no interactions"
        notes.append(f'{label}: {reached}, as D="auto" lets the data decide.')
    shaped = section.terms["shape"].dropna()
    if len(shaped):
        notes.append(_shapes_note(shaped, section.terms))
    heaped = section.terms[section.terms["atoms"].fillna(0) > 0]
    if len(heaped):
        notes.append(_atoms_note(heaped))
    shares = section.shares
    if shares > 0 and abs(shares - 1) > _COVARY:
        notes.append(
            f"shares sum to {100 * shares:.1f} %: terms of the same features covary; the "
            f"covariances make up {100 * (1 - shares):+.1f} %."
        )
    return notes


def _shapes_note(shaped: pd.Series, terms: pd.DataFrame) -> str:
    """Which smooths are held in a shape, and what that does not hold."""
    listed = ", ".join(f"{label} {shape}" for label, shape in shaped.items())
    others = (terms["order"] > 1).any()
    alone = "main effects alone, interactions are free; " if others else ""
    return f"held in shape: {listed} ({alone}edf and standard errors are those without the constraint)."


def _atoms_note(terms: pd.DataFrame) -> str:
    """Which terms have functions of single values, and whether these are on."""
    shown = []
    for label, row in _rows(terms):
        edf = row.atoms_edf
        used = "" if edf != edf else f" ({edf:.1f} edf)" if edf >= _ATOMS_OFF else " (off)"
        shown.append(f"{label} {int(row.atoms)}{used}")
    return f"values that many rows share have functions of their own: {', '.join(shown)}."


def _figure(value: float | None, digits: int = 4) -> str:
    return _UNKNOWN if value is None else number(value, digits)


def _known(value: Any, form: str) -> str:
    return _UNKNOWN if value is None else format(value, form)


def _wrapped(text: str, indent: str = "    ") -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)
