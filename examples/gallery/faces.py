"""How old? A picture of a face, and two measurements.

Wrinkles and grey hair tell age, and so do hearing and lung capacity. The measurements are smooths, read
as curves with bands; the picture is a term too, `deep(face, net="eyes")`, with a convolutional network
of Keras. Poor hearing and grey hair go together, so network and smooth could share the effect as they
please: `orthogonalize="all"` leaves to the smooths what they can say, and the network adds the rest. So
the curve stays where it is without the faces, and its band becomes narrower. The faces are drawn here,
so the truth is known.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
from telling import BLUE, DASHED, SOLID, VERMILLION, draw_band, draw_truth, picture, read_arguments

import ahofm_keras as ak

SIZE = 16
SMOOTHS = "age ~ s(hearing) + s(lungs)"
FORMULAS = {
    "measurements": SMOOTHS,
    "faces": 'age ~ deep(face, net="eyes")',
    "both": f'{SMOOTHS} + deep(face, net="eyes", orthogonalize="all")',
}


def draw_faces(wrinkles: np.ndarray, grey: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Faces of 16 by 16 pixels: hair, eyes, a mouth, and lines on the forehead."""
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    faces = np.full((len(grey), SIZE, SIZE), 0.1)
    skin = rng.uniform(0.5, 0.8, len(grey))[:, None, None]
    head = ((x - 7.5) / 6) ** 2 + ((y - 8.5) / 7) ** 2 < 1
    faces = np.where(head, skin, faces)
    faces = np.where(head & (y < 4), 0.2 + 0.6 * grey[:, None, None], faces)
    lines = head & ((y == 5) | (y == 7)) & (x > 3) & (x < 12)
    faces = np.where(lines, skin * (1 - 0.6 * wrinkles[:, None, None]), faces)
    features = ((y == 9) & ((x == 5) | (x == 10))) | ((y == 13) & (abs(x - 7.5) < 2))
    faces = np.where(features, 0.15, faces)
    return (faces + 0.05 * rng.normal(size=faces.shape))[..., None].astype(np.float32)


def true_hearing(loss: np.ndarray) -> np.ndarray:
    """Years over hearing loss in decibels, but for a constant."""
    return np.asarray(14 * np.tanh((loss - 25) / 12))


def simulate_people(rows: int, seed: int) -> dict[str, Any]:
    """People whose hair is grey where their hearing is poor, more often than not."""
    rng = np.random.default_rng(seed)
    hearing, lungs = rng.uniform(5, 50, rows), rng.uniform(2, 6, rows)
    wrinkles = rng.uniform(0, 1, rows)
    grey = np.clip(0.6 * (hearing - 5) / 45 + 0.4 * rng.uniform(size=rows), 0, 1)
    age = 50 + true_hearing(hearing) - 3 * (lungs - 4) + 16 * (wrinkles - 0.5) * (0.5 + grey)
    age = age + 3 * rng.normal(size=rows)
    return {"hearing": hearing, "lungs": lungs, "face": draw_faces(wrinkles, grey, rng), "age": age}


def make_network() -> keras.Model:
    """Two convolutions, and one number."""
    start = [keras.initializers.GlorotUniform(seed=seed) for seed in range(4)]
    return keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 1)),
            keras.layers.Conv2D(8, 3, activation="relu", kernel_initializer=start[0]),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(8, 3, activation="relu", kernel_initializer=start[1]),
            keras.layers.Flatten(),
            keras.layers.Dense(16, activation="tanh", kernel_initializer=start[2]),
            keras.layers.Dense(1, kernel_initializer=start[3]),
        ]
    )


def main() -> dict[str, float]:
    telling = read_arguments(__doc__)
    train = simulate_people(400 if telling.quick else 2000, seed=0)
    test = simulate_people(1000, seed=1)
    for name in ("hearing", "lungs"):
        test[name] = np.clip(test[name], train[name].min(), train[name].max())
    at = np.linspace(train["hearing"].min(), train["hearing"].max(), 60)
    truth = true_hearing(at) - np.mean(true_hearing(train["hearing"]))
    print(f"{len(train['age']):,} people to learn from, noise 3 years\n")
    print("terms          error for new people (years)   share of the faces   s(hearing): error, band")
    findings: dict[str, float] = {}
    models: dict[str, Any] = {}
    for name, formula in FORMULAS.items():
        nets = {"eyes": make_network()} if "deep(" in formula else None
        model = models[name] = ak.AdditiveModel(formula, train, nets=nets)
        model.fit(train, verbose=0)
        findings[name] = float(np.sqrt(np.mean((model.predict(test) - test["age"]) ** 2)))
        share = ak.shares(model).set_index("part")["share"].get("deep(face)", 0.0)
        away = ""
        if "s(hearing)" in formula:
            curve = ak.effect(model, "hearing", at={"hearing": at})
            lower, upper = curve.band()
            error = np.sqrt(np.mean((curve.fit - truth) ** 2))
            findings[f"band, {name}"] = float(np.mean(upper - lower))
            findings[f"held, {name}"] = float(np.mean((lower <= truth) & (truth <= upper)))
            away = f"{error:.2f}, {findings[f'band, {name}']:.2f}"
        print(f"{name:14} {findings[name]:28.2f} {share:20.1%} {away:>25}")
    person = {name: values[[0]] for name, values in test.items()}
    print(f"\n{ak.explain(models['both'], person)}")
    draw(models, train, at, truth, telling.out / "faces.png")
    return findings


def draw(models: Any, train: Any, at: np.ndarray, truth: np.ndarray, path: Path) -> None:
    title = "Age from a face and two measurements"
    with picture(path, title, (11.5, 4.2), mosaic="abcxxxx;defxxxx;ghixxxx") as axes:
        shown = np.argsort(train["age"])[np.linspace(0, len(train["age"]) - 1, 9).astype(int)]
        for letter, row in zip("abcdefghi", shown, strict=True):
            axes[letter].imshow(train["face"][row, ..., 0], cmap="gray", vmin=0, vmax=1)
            axes[letter].set_axis_off()
            axes[letter].set_title(f"{train['age'][row]:.0f}", loc="center", fontsize=9, pad=2)
        ax = axes["x"]
        for name, colour, dash in (("measurements", VERMILLION, DASHED), ("both", BLUE, SOLID)):
            frame = ak.effect(models[name], "hearing", at={"hearing": at}).frame()
            band = frame.rename(columns={"fit": "mean"})
            label = "and the faces" if name == "both" else "measurements alone"
            draw_band(ax, at, band, colour, dash, label)
        draw_truth(ax, at, truth, "truth")
        ax.set(title="s(hearing) without and with the faces, 95 % bands", xlabel="hearing loss (dB)")
        ax.set_ylabel("years")
        ax.legend()


if __name__ == "__main__":
    main()
