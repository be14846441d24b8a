"""What a model is, in words for people who do not write Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ahofm_keras.decomposition.parts import Parts
from ahofm_keras.families import LINKS, Link
from ahofm_keras.model import AdditiveModel
from ahofm_keras.reporting.responses import level_words
from ahofm_keras.transforms import Expression

_ONE = {1: "a single feature", 2: "a pair", 3: "a triple"}
_SEVERAL = {1: "single features", 2: "pairs", 3: "triples"}
# Responses of several columns.
_RESPONSES = {"Surv": "survival", "cbind": "the share of {0}"}
_SOLVERS = {
    "variational": "variational: it chose the smoothing and switched off what was not needed",
    "bcd": "bcd: exact block updates at the smoothing asked for",
    "adam": "adam: mini-batches with early stopping",
    "hybrid": "hybrid: networks by mini-batches, all other terms by exact updates, in turn",
}


def default_title(parts: Parts) -> str:
    """A headline, e.g. `How price depends on 8 features`."""
    names = [variable.label for variable in parts.variables]
    on = f"{len(names)} features" if len(names) > 2 else " and ".join(names) or "nothing"
    return f"How {response_words(parts.model.response)} depends on {on}"


def response_words(response: Expression) -> str:
    """What a response of several columns is called."""
    words = _RESPONSES.get(response.function)
    return str(response) if words is None else words.format(*response.arguments)


def of_response(words: str, response: Expression, between: str = "") -> str:
    """Words with the response after them; of a time they say it all."""
    if response.function == "Surv":
        return words
    return " ".join(filter(None, (words, between, response_words(response))))


def observed_words(response: Expression) -> str:
    """What was observed of it in a row."""
    return str(response.arguments[-2]) if response.function == "Surv" else response_words(response)


def describe_words(model: AdditiveModel, ranking: list[dict[str, Any]]) -> dict[str, str]:
    """Sentences that say what the model is.

    Args:
        model: fitted.
        ranking: of its effects, from `describe_ranking`.
    """
    return {
        "what": _what(model, ranking),
        "link": _about_parameter(model, LINKS[model.family.link].sentence),
        "scale": model.whole().family.reader_note
        if model.response.is_column or model.response.function in _RESPONSES
        else f"Predictions are on the scale of {model.response}, as the formula asks.",
    }


def describe_family(model: AdditiveModel) -> dict[str, Any]:
    """Name and link, and what a page says and shows because of them."""
    family, link = model.family, LINKS[model.family.link]
    return {
        "name": family.name,
        "link": link.name,
        "binary": family.binary,
        "linear": family.is_linear,
        "result_label": of_response(family.result_label, model.response),
        "band_label": family.predicts.removeprefix("the ").replace("average", "mean"),
        "sum_label": link.sum_label,
        "effect_axis": f"Effect on {link.scale.format(response=_quantity(model, link))}",
        "ratio": link.ratio,
    }


def describe_parameters(every: Sequence[Parts]) -> dict[str, Any]:
    """What a model with several predictors is, and each of its parameters, in words.

    Returns:
        `lead` and `intro`, and one entry per parameter with its `name`, what it `means`, and whether it
        is `constant`.
    """
    whole = every[0].model.whole()
    names = list(whole.design.predictors)
    response, levels = response_words(whole.response), [level_words(own) for own in whole.family.levels]
    if levels:
        listed = levels[0] if len(levels) == 1 else f"{', '.join(levels[:-1])} and {levels[-1]}"
        what = "the value" if len(levels) == 1 else "the values"
        lead = f"It predicts the {listed} of {response}: {what} that so many responses stay below."
        made = f"They are made of {len(names)} parameters, each of which"
    else:
        one = "class" if whole.family.several_classes else "value"
        lead = f"It predicts more than one number: for each row how likely every {one} of {response} is."
        name = whole.family.name.replace("_", " ")
        made = f"That distribution ({name}) has {len(names)} parameters, each of which"
    intro = f"{made} is a sum of effects of its own. Choose the one that the rest of the page shows."
    return {
        "lead": lead,
        "intro": intro,
        "parameters": [
            {
                "name": parts.parameter,
                "means": whole.family.meaning(str(parts.parameter)),
                "constant": not parts.groups and not parts.model.design.only.offsets,
            }
            for parts in every
        ],
    }


def _about_parameter(model: AdditiveModel, sentence: str) -> str:
    """What is said of a prediction, said of the parameter that is predicted."""
    if model.whole().family.several_classes:
        return ""
    if model.of_parameter is None:
        return sentence
    return sentence.replace("the prediction", f"the {model.of_parameter}")


def _quantity(model: AdditiveModel, link: Link) -> str:
    """What a link is taken of: of several words in parentheses."""
    together = model.of_parameter is None or link.is_identity
    return model.quantity if together else f"({model.quantity})"


def _what(model: AdditiveModel, ranking: list[dict[str, Any]]) -> str:
    """What a prediction is made of, without what was switched off in the fit."""
    pieces = ["a constant"]
    for entry in ranking:
        order, count = entry["order"], entry["active"]
        if count:
            names, number = (_ONE, "one") if count == 1 else (_SEVERAL, f"{count:,}")
            effects = "" if len(pieces) > 1 else " effect" if count == 1 else " effects"
            pieces.append(f"{number}{effects} of {names.get(order, f'{order} features')}")
    pieces += [
        f"what the {term.word} {term.label} adds, which this page holds at its average"
        for term in model.design.only.terms
        if term.weight_function or term in model.design.layout.only.opaque
    ]
    if model.whole().family.several_classes:
        together = pieces[0] if len(pieces) == 1 else f"{', '.join(pieces[:-1])} and {pieces[-1]}"
        return f"The sum of {together} is the {model.quantity}."
    predicts = model.family.predicts
    together = pieces[0] if len(pieces) == 1 else f"{', '.join(pieces[:-1])} and {pieces[-1]}"
    return f"It predicts {of_response(predicts, model.response, 'of')} as the sum of {together}."


def describe_facts(parts: Parts) -> list[dict[str, Any]]:
    """Rows of the table of the model's details."""
    model, record = parts.model, parts.model.fit_result
    facts: list[tuple[str, str]] = [
        ("Response", str(model.response)),
        ("Family", _family(model)),
        ("Rows of the fit", f"{_rows(model):,}"),
    ]
    facts += [(f"Held {shape}", label) for label, shape in _shapes(model)]
    if record is not None:
        ended = "converged" if record.converged else "stopped at its last round, not converged"
        facts.append(("Solver", _SOLVERS.get(record.solver, record.solver)))
        facts.append(("Rounds", f"{record.epochs:,}, {ended}"))
        if record.edf is not None:
            facts.append(("Effective degrees of freedom", f"{record.edf:.1f}"))
        if not model.family.dispersion_known and record.dispersion:
            facts.append(("Dispersion", f"{record.dispersion:.4g}"))
        if record.log_likelihood is not None:
            facts.append(("Log-likelihood of the fit", f"{record.log_likelihood:,.1f}"))
    return [{"label": label, "value": value} for label, value in facts]


def _shapes(model: AdditiveModel) -> list[tuple[str, str]]:
    """Smooths that are held in a shape, and which."""
    spans = model.design.layout.only.spans
    return [(span.term.label, span.block.shape) for span in spans if span.block.shape]


def _family(model: AdditiveModel) -> str:
    links = [f"{name}: {link.name}" for name, link in model.whole().family.parameters.items()]
    several = len(links) > 1
    return (
        f"{model.family.name}, {'links ' + ', '.join(links) if several else model.family.link + ' link'}"
    )


def _rows(model: AdditiveModel) -> int:
    record = model.fit_result
    return model.design.rows if record is None or record.rows is None else record.rows
