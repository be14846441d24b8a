"""The paper's two tables, as printed: mean (standard deviation) over 10 splits, there labelled MSE."""

from __future__ import annotations

# Data set -> method -> (mean, standard deviation).
Table = dict[str, dict[str, tuple[float, float]]]


def _table(methods: tuple[str, ...], rows: dict[str, tuple[tuple[float, float], ...]]) -> Table:
    return {name: dict(zip(methods, cells, strict=True)) for name, cells in rows.items()}


TABLE_1 = _table(
    ("GAM", "FM", "HOFM", "AFM", "AHOFM"),
    {
        "airfoil": ((119.3, 2.490), (90.70, 45.55), (79.03, 51.29), (4.314, 0.576), (4.181, 0.699)),
        "concrete": ((9.768, 8.408), (10.55, 0.970), (10.56, 0.955), (6.100, 0.648), (6.127, 0.491)),
        "diabetes": ((142.1, 9.626), (143.7, 10.04), (143.3, 9.312), (57.12, 6.243), (63.65, 9.672)),
        "energy": ((3.409, 0.363), (7.487, 0.620), (7.480, 0.632), (3.137, 0.332), (3.183, 0.359)),
        "forest_fires": ((1.465, 0.163), (1.403, 0.105), (1.398, 0.107), (1.573, 0.325), (1.773, 0.307)),
        "naval": ((0.002, 0.000), (0.009, 0.001), (0.009, 0.001), (0.004, 0.002), (0.003, 0.001)),
        "yacht": ((3.027, 0.517), (8.883, 0.990), (8.898, 0.985), (2.401, 0.618), (1.743, 0.624)),
    },
)
TABLE_2 = _table(
    ("GAMBoost", "GA2MBoost", "A(HO)FM"),
    {
        "airfoil": ((79.03, 51.29), (4.628, 0.213), (4.181, 0.699)),
        "concrete": ((6.280, 0.486), (6.292, 0.586), (6.100, 0.648)),
        "diabetes": ((55.18, 5.020), (55.16, 5.618), (57.12, 6.243)),
        "energy": ((3.780, 0.427), (3.759, 0.368), (3.137, 0.332)),
        "forest_fires": ((1.388, 0.113), (1.397, 0.098), (1.573, 0.325)),
        "naval": ((0.012, 0.000), (0.003, 0.001), (0.003, 0.001)),
        "yacht": ((1.532, 0.546), (1.504, 0.504), (1.743, 0.624)),
    },
)
