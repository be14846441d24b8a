"""The sections of the page: one function an experiment, every figure read from its tables."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rerun.markdown import Results, markdown, number

METHODS_1 = ("GAM", "FM", "HOFM", "AFM", "AHOFM")
METHODS_2 = ("GAMBoost", "GA2MBoost", "A(HO)FM")


def estimation(results: Results, size: dict[str, Any]) -> str:
    table = results.table("estimation")
    names = {"n": "n", "method": "model", "mse": "MSE of a surface", "minus_ti": "minus exact `ti`",
             "minus_mgcv": "minus mgcv"}  # fmt: skip
    return f"""## 1. Estimation

p = {size["features"]} features, a true surface for each pair, signal-to-noise ratio
{size["signal_to_noise"]} (variances), {size["seeds"]} seeds. The paper does not say what its
surfaces are; here each is a tensor product of 5 by 5 splines with random coefficients of its own,
so it has full rank and nothing suits factors that pairs share. "Exact" is the model with one `ti()`
a pair, fitted by this library's variational solver, and mgcv's `bam`, both with 7 functions a
margin. The MSE of a surface is its mean squared distance from the true one on a grid, mean over
surfaces and seeds; the mean of the squares of a true surface is
{number(1 / _pairs(size["features"]))}.

{markdown(table, names)}

{results.figure("estimation", "Difference of the error of a surface to the exact model, by F and n")}

{results.figure("estimation_surfaces", "True and estimated surfaces")}

The picture has the first simulation with n = {size["rows"][0]:,}: the truth, the exact models, and
the AFM by F (variational).
"""


def _pairs(features: int) -> int:
    return features * (features - 1) // 2


def prediction(results: Results, size: dict[str, Any]) -> str:
    names = {
        "n": "n",
        "method": "model",
        "error": "error",
        "se": "standard error",
        "seconds": "seconds a fit",
    }
    return f"""## 2. Prediction

The same fits. Error: mean squared distance between predicted and true mean of 10,000 fresh rows;
the variance of the true mean is 1, that of the noise {number(1 / size["signal_to_noise"])}.

{markdown(results.table("prediction"), names)}

{results.figure("prediction", "Error of the predicted mean against n, by F")}
"""


def scalability(results: Results, size: dict[str, Any]) -> str:
    table, slopes = results.table("scalability"), results.table("scalability_slopes")
    names = {"method": "solver", "n": "n", "p": "p", "processor": "processor seconds",
             "seconds": "seconds",
             "epochs": "epochs or sweeps", "grown": "memory, MB"}  # fmt: skip
    powers = {"method": "solver", "n": "n", "over": "over", "processor": "power, seconds",
              "grown": "power, memory"}  # fmt: skip
    return f"""## 3. Scalability

A surface for each pair of p standard normal features: one `ahofm` of rank 5, or p (p - 1) / 2 terms
of `bam` with its default of 5 functions a margin. Processor seconds are summed over cores. Memory
is what the fit added. The paper writes that time and memory of `bam` "grow exponentially in the
number of features"; the number of pairs grows with the square of p. Powers are slopes of a line
through the logarithms.

{markdown(slopes, powers, {"processor": _two, "grown": _two})}

{results.figure("scalability", "Memory and seconds against the number of features")}

{markdown(table, names)}
"""


def _two(value: float) -> str:
    return "" if pd.isna(value) else f"{value:.2f}"


def benchmark(results: Results, size: dict[str, Any]) -> str:
    table, targets = results.table("benchmark"), results.table("benchmark_targets")
    ranks = ", ".join(map(str, size["ranks"]))
    return f"""## 4. Tables 1 and 2

Root mean squared errors on test rows; random 80/20 splits, number of splits: {size["splits"]}; F in
{{{ranks}}}. Tables show the mean (standard deviation over splits, where there are several). Adam as
in the paper: 15 % of the training rows decide when to stop, patience 50, df = 15, even knots. As in
the paper each method has the F with the smallest mean test error. Beside it the variational solver
with the library's defaults (`ahofm(., D=3)`): nothing is chosen, nothing held out. GAMBoost and
GA2MBoost are component-wise boosting of P-splines, and of P-splines and all their pairs, with 4
degrees of freedom a learner and steps of 0.1.

Here:

{_wide(table, "ours", "sd")}

The paper:

{_wide(table, "paper", "paper_sd")}

{results.figure("benchmark", "Test errors here and in the paper")}

Do the paper's figures come out again? "Agrees" means: within two of the paper's standard
deviations.

{_verdicts(table)}

{paper_slips(targets)}
"""


def _wide(table: pd.DataFrame, value: str, spread: str) -> str:
    """A row a data set, a column a method: mean (standard deviation)."""
    methods = [
        m
        for m in (*METHODS_1, *METHODS_2, "variational")
        if table.loc[table["method"] == m, value].any()
    ]
    rows = []
    for name, own in table.groupby("set", sort=False):
        cells = own.set_index("method")
        row = {m: _cell(cells.loc[m, value], cells.loc[m, spread]) for m in methods}
        fewer = cells["splits"].iloc[0] < table["splits"].max()
        label = f"{name} ({cells['splits'].iloc[0]} splits)" if fewer else name
        rows.append({"set": label, **row})
    return markdown(pd.DataFrame(rows), {"set": "data", **{method: method for method in methods}})


def _cell(value: float, spread: float) -> str:
    return number(value, 4) if pd.isna(spread) else f"{number(value, 4)} ({number(spread, 4)})"


def _verdicts(table: pd.DataFrame) -> str:
    methods = [m for m in (*METHODS_1, *METHODS_2) if m in set(table["method"])]
    rows = [
        {"set": name, **{m: own.set_index("method").loc[m, "verdict"] for m in methods}}
        for name, own in table.groupby("set", sort=False)
    ]
    return markdown(pd.DataFrame(rows), {"set": "data", **{method: method for method in methods}})


def paper_slips(targets: pd.DataFrame) -> str:
    """What of the paper's tables cannot be as printed, and what explains it."""
    names = {"set": "data", "mean": "mean of the target", "sd": "its sd", "variance": "its variance",
             "error_of_0": "RMSE of predicting 0", "paper_least": "paper, least",
             "paper_most": "paper, most", "constant": "constant as bad as that"}  # fmt: skip
    own = targets.set_index("set")
    diabetes = own.loc["diabetes"] if "diabetes" in own.index else None
    reading = ""
    if diabetes is not None:
        share = 1 - diabetes["paper_least"] / diabetes["variance"]
        root = 1 - diabetes["paper_least"] ** 2 / diabetes["variance"]
        reading = (
            f" On Diabetes {number(diabetes['paper_least'], 4)} as an MSE would explain "
            f"{100 * share:.0f} % of the variance of the target, {number(diabetes['variance'], 4)}; as "
            f"an RMSE it explains {100 * root:.0f} %."
        )
    return f"""### What cannot be as printed

- **MSE or RMSE.** Both tables are labelled "MSE".{reading} The figures are read as RMSE here.
- **Columns that did not converge.** Airfoil and Diabetes have errors far above the standard
  deviation of the target under GAM, FM and HOFM, Airfoil under GAMBoost too: much worse than
  predicting the mean. The last column below is the constant that predicts as badly as the largest
  of them. It lies between 0 and the mean, where an optimizer would be that starts at 0 on an
  unscaled response and has not arrived. Here the intercept starts at the mean and the response is
  scaled inside.
- **A value that stands twice.** Airfoil has 79.03 (51.29) under HOFM in Table 1 and 79.03 (51.29)
  under GAMBoost in Table 2: one of the two must be a slip.
- **Bold.** In Table 2 GAMBoost is bold on Diabetes with 55.18; GA2MBoost has 55.16.
- **F.** The section on the ablation study has F in {{1, 5, 15}}, the supplement F = 1, 5, 10. Here
  both lists are joined in the full form.
- **Degrees of freedom.** The text defines df = tr(2H - H'H); the algorithm sv2la in the supplement
  solves sum 1 / (1 + lambda s) = df, which is tr(H). The two give different lambdas for the same
  df. Here the text's is the default; `df_kind="H"` is the other.

{markdown(targets, names, dict.fromkeys(names, lambda value: number(value, 4)))}
"""


def interpretability(results: Results, size: dict[str, Any]) -> str:
    facts = results.table("interpretability_fit").iloc[0]
    names = {"features": "features", "true": "true share", "estimated": "estimated share"}
    formats = dict.fromkeys(("true", "estimated"), lambda value: f"{100 * value:.1f} %")
    return f"""## 5. Interpretability

The paper's example of time, lat, lon and rate, {size["rows"]:,} rows: the mean is the sum of all
three-way tensor products, with random coefficients. `ahofm(time, lat, lon, rate, D=3,
F={size["rank"]})` was fitted in {number(facts["seconds"])} seconds; on fresh rows the fitted mean
misses the true one by {number(facts["rmse_of_mean"])} (root mean squared; standard deviation of the
mean {number(facts["sd_of_mean"])}, noise {number(facts["noise"])}). The functions of a feature do
not have mean zero, so this truth has main effects and pairs too; the table has the shares of all
subsets in its variance.

{markdown(results.table("interpretability"), names, formats)}

{results.figure("interpretability", "Marginals of the four three-way interactions along each feature")}

A row per triple, a column per feature: the line is the mean of the triple and its smaller subsets along
the feature, grey lines its spread over the other two features, as in the paper's figure.
"""


def convergence(results: Results, size: dict[str, Any]) -> str:
    names = {"solver": "solver", "epochs": "last epoch or sweep seen", "processor": "processor seconds",
             "objective": "lowest objective", "to_1%": "to 1 %", "to_0.1%": "to 0.1 %",
             "error": "error at the end", "least_error": "least error on the way"}  # fmt: skip
    formats = {"objective": lambda value: number(value, 5)}
    return f"""## 6. Block coordinate descent against Adam

The paper: "different block-coordinate descent variants showed slow convergence", Adam "similar or
even better results". Here `bcd` solves the block of all factors of a feature exactly, where the
supplement steps through one factor at a time. The same penalised objective, rows and start: n =
{size["rows"]:,}, p = {size["features"]}, F = {size["rank"]}, df = 15, the setting of section 1. "To
1 %" are the processor seconds until the objective first is within 1 % of the lowest value that any
of them reached; empty: never. Adam stops early, on held-out rows, so it is not meant to reach the
optimum; the best weights, which it goes back to in the end, are not in the table. Its time includes
the compilation of its training step. The error is that of the mean of fresh rows, whose variance is
1; the variational solver chooses the smoothing, the others have what df = 15 asks for.

{markdown(results.table("convergence"), names, formats)}

{results.figure("convergence", "Objective and error by time")}
"""


def sparsity(results: Results, size: dict[str, Any]) -> str:
    names = {"pairs": "true pairs", "pairs_found": "pairs found", "pairs_false": "false pairs",
             "triples": "true triples", "triples_found": "triples found",
             "triples_false": "false triples",
             "share": "share of the true ones", "error": "error", "seconds": "seconds"}  # fmt: skip
    return f"""## 7. Sparsity

Beyond the paper, which names it as future work. {size["features"]} uniform features, n =
{size["rows"]:,}, {size["seeds"]} seed{"s" * (size["seeds"] > 1)}; main effects of five features,
and 0, 1 or 5 pairs and triples. Main effects, pairs and triples have variance 1 each together, the
noise too. `ahofm(., D=3)` with its defaults models all {_pairs(size["features"])} pairs and
{_triples(size["features"]):,} triples; the variational solver switches off what the data does not
need. An interaction is kept if it has 1 % of the variance of the fitted mean; "found" are kept ones
that are true, "false" the other kept ones; "share of the true ones" is in the variance of all
fitted interactions (empty: none was fitted); the error is relative to the variance of the true
mean.

{markdown(results.table("sparsity"), names)}

{results.figure("sparsity", "True, found and false interactions")}
"""


def _triples(features: int) -> int:
    return features * (features - 1) * (features - 2) // 6
