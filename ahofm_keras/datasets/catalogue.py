"""The seven data sets of the paper: where they come from, their columns and what they must hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from ahofm_keras.datasets.sources import UciArchive, from_scikit_learn

_CC_BY = "CC BY 4.0"


@dataclass(frozen=True)
class Entry:
    """A published data set.

    Args:
        title: the owner's name for it.
        columns: names, features first; the columns of the published file in their order.
        targets: the columns to predict, the usual one first; they are the last columns.
        rows: number of rows.
        checksum: SHA-256 of the values, see `loading.checksum`.
        fetch: the frame from its owner.
        page: address of its description.
        description: what a row is, units, oddities.
        citation: of its authors.
        licence: of the data.
    """

    title: str
    columns: tuple[str, ...]
    targets: tuple[str, ...]
    rows: int
    checksum: str
    fetch: Callable[[tuple[str, ...]], pd.DataFrame]
    page: str
    description: str
    citation: str
    licence: str = _CC_BY


def _page(number: int, name: str) -> str:
    return f"https://archive.ics.uci.edu/dataset/{number}/{name}"


CATALOGUE = {
    "airfoil": Entry(
        "Airfoil Self-Noise",
        (
            "frequency", "angle_of_attack", "chord_length", "free_stream_velocity",
            "displacement_thickness", "sound_pressure",
        ),
        ("sound_pressure",),
        1503,
        "c6e62116b55692f227e25b503afa2270ff83bd3257182022e2d417877e9f9dda",
        UciArchive(291, "airfoil+self+noise", "airfoil_self_noise.dat"),
        _page(291, "airfoil+self+noise"),
        "Sound pressure level (dB) of airfoils in a wind tunnel, by frequency (Hz), angle of attack "
        "(degrees), chord length (m), free-stream velocity (m/s) and displacement thickness (m).",
        "Brooks, Pope, Marcolini (1989): Airfoil self-noise and prediction. NASA RP-1218.",
    ),
    "concrete": Entry(
        "Concrete Compressive Strength",
        (
            "cement", "blast_furnace_slag", "fly_ash", "water", "superplasticizer", "coarse_aggregate",
            "fine_aggregate", "age", "compressive_strength",
        ),
        ("compressive_strength",),
        1030,
        "61a51a55ac790ac903502a1ab7ca92af4451d21ff36127db5367d015ec51863b",
        UciArchive(165, "concrete+compressive+strength", "Concrete_Data.xls"),
        _page(165, "concrete+compressive+strength"),
        "Compressive strength (MPa) of concrete by seven ingredients (kg per m3) and age (days). 25 "
        "rows stand twice in the original.",
        "Yeh (1998): Modeling of strength of high-performance concrete using artificial neural "
        "networks. Cement and Concrete Research 28(12).",
    ),
    "diabetes": Entry(
        "Diabetes",
        (
            "age", "sex", "bmi", "blood_pressure", "total_cholesterol", "ldl", "hdl", "tc_hdl_ratio",
            "log_triglycerides", "glucose", "disease_progression",
        ),
        ("disease_progression",),
        442,
        "e7310e71350ee5f173c99bb1807bc5a3f1ba907c36fd39d6350bf4b1b724c8a8",
        from_scikit_learn("load_diabetes"),
        "https://www4.stat.ncsu.edu/~boos/var.select/diabetes.html",
        "Progression of diabetes a year after baseline, by age, sex (1, 2), body mass index, mean blood "
        "pressure and six serum measurements. Raw values, not standardised.",
        "Efron, Hastie, Johnstone, Tibshirani (2004): Least angle regression. Annals of Statistics "
        "32(2).",
        "none stated by its owners; scikit-learn ships it under BSD-3-Clause",
    ),
    "energy": Entry(
        "Energy Efficiency",
        (
            "relative_compactness", "surface_area", "wall_area", "roof_area", "overall_height",
            "orientation", "glazing_area", "glazing_area_distribution", "heating_load", "cooling_load",
        ),
        ("heating_load", "cooling_load"),
        768,
        "0356610819e4ff1b2df635d783ffbf58b773eb13934ba6cccc4ad860cb7a0188",
        UciArchive(242, "energy+efficiency", "ENB2012_data.xlsx"),
        _page(242, "energy+efficiency"),
        "Simulated heating or cooling load of buildings by their shape. `orientation` (2 to 5) and "
        "`glazing_area_distribution` (0 to 5) are codes.",
        "Tsanas, Xifara (2012): Accurate quantitative estimation of energy performance of residential "
        "buildings using statistical machine learning tools. Energy and Buildings 49.",
    ),
    "forest_fires": Entry(
        "Forest Fires",
        (
            "x", "y", "month", "day", "ffmc", "dmc", "dc", "isi", "temp", "rh", "wind", "rain", "area",
        ),
        ("area",),
        517,
        "f5d5e89bf792385783f37c56a95f2fe8b34d44fd6b6c2e780189ba2b502c06e7",
        UciArchive(162, "forest+fires", "forestfires.csv", header=True),
        _page(162, "forest+fires"),
        "Burned area (ha) of forest fires by place on a grid, month and day (texts), four indices of "
        "the fire weather, temperature (C), humidity (%), wind (km/h) and rain (mm). The area is raw "
        "and very skewed: mostly predicted as log(1 + area).",
        "Cortez, Morais (2007): A data mining approach to predict forest fires using meteorological "
        "data. EPIA 2007.",
    ),
    "naval": Entry(
        "Condition Based Maintenance of Naval Propulsion Plants",
        (
            "lever_position", "ship_speed", "gas_turbine_shaft_torque", "gas_turbine_revolutions",
            "gas_generator_revolutions", "starboard_propeller_torque", "port_propeller_torque",
            "hp_turbine_exit_temperature", "compressor_inlet_air_temperature",
            "compressor_outlet_air_temperature", "hp_turbine_exit_pressure",
            "compressor_inlet_air_pressure", "compressor_outlet_air_pressure",
            "gas_turbine_exhaust_pressure", "turbine_injection_control", "fuel_flow",
            "compressor_decay", "turbine_decay",
        ),
        ("compressor_decay", "turbine_decay"),
        11934,
        "f6868c68f7504a215bcd9aec51ee248ca13ba47ba5c817c428f4aac784890415",
        UciArchive(316, "condition+based+maintenance+of+naval+propulsion+plants", "data.txt"),
        _page(316, "condition+based+maintenance+of+naval+propulsion+plants"),
        "Decay coefficient of the compressor or the turbine of a simulated frigate. As published, "
        "`compressor_inlet_air_temperature` and `compressor_inlet_air_pressure` are constant, and "
        "`port_propeller_torque` equals `starboard_propeller_torque`.",
        "Coraddu, Oneto, Ghio, Savio, Anguita, Figari (2014): Machine learning approaches for improving "
        "condition-based maintenance of naval propulsion plants. Journal of Engineering for the "
        "Maritime Environment.",
    ),
    "yacht": Entry(
        "Yacht Hydrodynamics",
        (
            "longitudinal_position", "prismatic_coefficient", "length_displacement_ratio",
            "beam_draught_ratio", "length_beam_ratio", "froude_number", "residuary_resistance",
        ),
        ("residuary_resistance",),
        308,
        "9094835a50254fe3c7a325f1c3dee71dbda663bbd36f7015789a24b753147de2",
        UciArchive(243, "yacht+hydrodynamics", "yacht_hydrodynamics.data"),
        _page(243, "yacht+hydrodynamics"),
        "Residuary resistance of sailing yachts by the shape of the hull and the Froude number.",
        "Gerritsma, Onnink, Versluis (1981): Geometry, resistance and stability of the Delft Systematic "
        "Yacht Hull Series. TU Delft.",
    ),
}  # fmt: skip
