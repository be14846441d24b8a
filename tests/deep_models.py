"""Data and networks that tests of `deep()` share."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pandas as pd


def small_net(inputs: int = 2, wide: int = 12, seed: int = 3) -> keras.Model:
    """Two dense layers, always with the same weights."""
    start = [keras.initializers.GlorotUniform(seed=seed + place) for place in range(2)]
    return keras.Sequential(
        [
            keras.Input((inputs,)),
            keras.layers.Dense(wide, "tanh", kernel_initializer=start[0]),
            keras.layers.Dense(1, kernel_initializer=start[1]),
        ]
    )


def image_net(shape: tuple[int, ...] = (5, 5, 1), seed: int = 5) -> keras.Model:
    """A convolution, a batch normalisation, and a number beside the image."""
    image, number = keras.Input(shape), keras.Input((1,))
    start = [keras.initializers.GlorotUniform(seed=seed + place) for place in range(2)]
    inner = keras.layers.Conv2D(3, 3, activation="relu", kernel_initializer=start[0])(image)
    inner = keras.layers.Flatten()(keras.layers.BatchNormalization()(inner))
    inner = keras.layers.Concatenate()([inner, number])
    return keras.Model([image, number], keras.layers.Dense(1, kernel_initializer=start[1])(inner))


def simulate(seed: int, rows: int = 300) -> dict[str, Any]:
    """Numbers, a category, images, and a response in which x1 is linear and x1, x2 interact."""
    rng = np.random.default_rng(seed)
    data: dict[str, Any] = {name: rng.uniform(-1, 1, rows) for name in ("x1", "x2", "x3")}
    data["g"] = rng.choice(list("abc"), rows)
    data["image"] = rng.normal(size=(rows, 5, 5, 1)).astype(np.float32)
    data["bright"] = data["image"][:, 1:4, 1:4, 0].mean(axis=(1, 2))
    data["f"] = 1.5 * data["x1"] + np.sin(3 * data["x3"]) + np.sin(3 * data["x1"] * data["x2"])
    data["y"] = data["f"] + 0.2 * rng.normal(size=rows)
    return data


def frame_of(data: dict[str, Any]) -> pd.DataFrame:
    """The same as a frame, whose column of images holds arrays."""
    return pd.DataFrame({name: list(own) if own.ndim > 1 else own for name, own in data.items()})
