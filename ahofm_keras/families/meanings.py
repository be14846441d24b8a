"""What parameters of distributions are, in words for people who do not know their letters."""

from __future__ import annotations

# By name; a family of which it is not true says so itself (`Family.meanings`).
MEANINGS = {
    "mean": "the average response",
    "loc": "where the middle of the responses lies",
    "scale": "how far responses spread around their middle: twice the scale is twice the spread",
    "df": (
        "how rare far values are: at 3 some responses lie far from all others, from about 30 on hardly "
        "any do"
    ),
    "shape": "what form the distribution has",
    "precision": "how close responses stay to their average: the larger, the closer",
    "dispersion": "how much responses vary around their average, beyond what its size alone would do",
    "power": "how fast the variation grows with the average",
    "skewness": "to which side the distribution leans: 0 to none, above 0 large values are far out",
    "tail": "how close far values come: below 1 they lie further out than in a normal distribution",
    "zero": "the probability of zeros beside those that the counts have anyway",
}


def meaning_of(parameter: str) -> str:
    """What is meant by a parameter in most families."""
    return MEANINGS.get(parameter, "a parameter of the distribution of the response")
