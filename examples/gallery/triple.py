"""Finding the one true triple among 20 features, then seeing it sharply.

Twenty genes are measured. The trait depends on two of them alone, on one pair, and on three that act
only together: no main effect and no pair gives those away. One term of the formula holds all 190 pairs
and all 1,140 triples; what the data does not need is switched off, the rest is ranked. Screening draws
what it finds with few factors; `ak.refine` gives the strongest an exact tensor product each in a new
model.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from telling import picture, read_arguments

import ahofm_keras as ak
from ahofm_keras.plotting import plot_interaction_map

PAIR, TRIPLE = ("gene_02", "gene_09"), ("gene_04", "gene_11", "gene_17")
SLICES = (-0.9, 0.4, 0.9)


def true_triple(first: np.ndarray, second: np.ndarray, third: np.ndarray) -> np.ndarray:
    """Zero on average along each of its genes, and no product of three curves."""
    return np.asarray(2.5 * np.sin(np.pi * (first + second)) * third)


def simulate_genes(rows: int, noise: float = 0.5, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({f"gene_{number:02d}": rng.uniform(-1, 1, rows) for number in range(1, 21)})
    data["trait"] = np.sin(2 * data["gene_01"]) + data["gene_07"] ** 2 + noise * rng.normal(size=rows)
    data["trait"] += 1.2 * data[PAIR[0]] * data[PAIR[1]]
    data["trait"] += true_triple(*(data[name].to_numpy() for name in TRIPLE))
    return data


def part_of_triple(model: ak.AdditiveModel, third: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Estimated and true part of the triple on a grid, at values of its last gene."""
    axis = np.linspace(-0.98, 0.98, 40)
    found = ak.effect(model, *TRIPLE, at=dict(zip(TRIPLE, (axis, axis, third), strict=True)))
    return found.fit, true_triple(*np.meshgrid(*found.grid, indexing="ij"))


def main() -> dict[str, object]:
    telling = read_arguments(__doc__)
    data = simulate_genes(700 if telling.quick else 2000)
    size = "F=1, k=6, df=4" if telling.quick else "F=3, k=10, df=6"
    model = ak.AdditiveModel(f"trait ~ ahofm(., D=3, {size})", data)
    # To find the triple one start is enough; its shape is refined later.
    model.fit(data, restarts=0, verbose=0)
    print(f"{len(data):,} rows, 20 genes; true are {':'.join(PAIR)} and {':'.join(TRIPLE)}\n")
    findings: dict[str, object] = {}
    kept = ak.shares(model)["subsets"]
    for order, name, count in ((2, "pairs", 190), (3, "triples", 1140)):
        ranked = ak.interactions(model, order=order, top=3)
        findings[name] = ranked["label"][0]
        print(f"Of {count:,} {name} {kept[order - 1]} are not switched off; shares of the variance")
        for row in ranked.itertuples():
            print(f"    {row.label:28} {row.share:7.2%}")

    refined = ak.refine(model, top=2, order=(2, 3), keep=False, verbose=0)
    exact = [term for term in ak.summary(refined).terms.index if term.startswith("ti")]
    print(f"\nRefined: main effects, {' and '.join(exact)}")
    print("Error of the triple's part, over its size")
    for name, own in (("screened", model), ("refined", refined)):
        found, truth = part_of_triple(own, np.linspace(-0.98, 0.98, 40))
        findings[name] = float(np.sqrt(np.mean((found - truth) ** 2) / np.mean(truth**2)))
        print(f"    {name:10} {findings[name]:6.1%}")
    draw(model, refined, telling.out / "triple.png")
    return findings


def draw(model: ak.AdditiveModel, refined: ak.AdditiveModel, path: Path) -> None:
    title = "One true pair among 190, one true triple among 1,140: found, then refined"
    screened, truth = part_of_triple(model, np.asarray(SLICES))
    exact, _ = part_of_triple(refined, np.asarray(SLICES))
    axis, levels = np.linspace(-0.98, 0.98, 40), np.linspace(-2.5, 2.5, 21)
    widths = [1, 1, 1, 0.75, 0.75, 0.75]
    with picture(path, title, (12, 5.6), "MMMABC;MMMDEF;MMMGHI", width_ratios=widths) as axes:
        plot_interaction_map(model, axes=axes["M"])
        axes["M"].set_title("screening: all pairs, main effects on the diagonal")
        axes["M"].set_title("", loc="right")
        rows = {"ABC": (truth, "truth"), "DEF": (screened, "screened"), "GHI": (exact, "refined")}
        for names, (values, label) in rows.items():
            for place, ax in enumerate(axes[name] for name in names):
                drawn = ax.contourf(
                    axis, axis, values[..., place].T, levels, cmap="RdBu_r", extend="both"
                )
                ax.set(xticks=[-0.5, 0.5], yticks=[-0.5, 0.5])
                ax.tick_params(labelbottom=names == "GHI", labelleft=place == 0)
            axes[names[0]].set_ylabel(f"{label}\n{TRIPLE[1]}")
        for place, value in enumerate(SLICES):
            axes["ABC"[place]].set_title(f"{TRIPLE[2]} = {value:g}")
            axes["GHI"[place]].set_xlabel(TRIPLE[0])
        slices = [axes[name] for name in "ABCDEFGHI"]
        bar = ax.figure.colorbar(drawn, ax=slices, label="effect of the triple on the trait")
        bar.set_ticks([-2, -1, 0, 1, 2])


if __name__ == "__main__":
    main()
