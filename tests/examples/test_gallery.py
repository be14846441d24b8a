"""Every story of the gallery runs in its quick form, finds what it tells, and draws its picture."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

GALLERY = Path(__file__).parents[2] / "examples" / "gallery"
DOCS = Path(__file__).parents[2] / "docs"
STORIES = sorted(path.stem for path in GALLERY.glob("*.py") if path.stem != "telling")


@pytest.fixture
def tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run a story as its command line does: what it found, what it printed; its picture is checked."""
    monkeypatch.syspath_prepend(GALLERY)
    monkeypatch.delenv("AHOFM_DATA", raising=False)
    before = mpl.rcParams.copy()

    def run(story: str) -> tuple[dict[str, Any], str]:
        monkeypatch.setattr(sys, "argv", [f"{story}.py", "--quick", "--out", str(tmp_path)])
        found = importlib.import_module(story).main()
        image = plt.imread(tmp_path / f"{story}.png")
        assert image.shape[0] > 300
        assert image.shape[1] > 1000
        assert image.std() > 0.05
        assert (tmp_path / f"{story}.png").stat().st_size < 120_000
        assert not plt.get_fignums()
        assert {key: mpl.rcParams[key] for key in ("font.size", "axes.titlesize")} == {
            key: before[key] for key in ("font.size", "axes.titlesize")
        }
        return found, capsys.readouterr().out

    yield run
    for name in (*STORIES, "telling"):
        sys.modules.pop(name, None)


def test_pairs_forecast_the_strength_of_new_mixtures_better(tell) -> None:
    found, text = tell("concrete")
    assert "Simulated samples (quick form): 240" in text
    assert found["and all pairs"] < 0.85 * found["main effects"]
    # What Abrams' law itself says, the other ingredients at their medians: 309 kg.
    assert found["recipe"] == pytest.approx(310, abs=25)


def test_the_offset_makes_young_drivers_dangerous(tell) -> None:
    found, text = tell("claims")
    assert found["truth"] > 5
    assert found["offset"] > 0.6 * found["truth"]
    assert found["no offset"] < 0.3 * found["truth"]
    assert found["inside"] > 0.8
    assert "rural" in text


def test_wards_differ_by_more_than_chance(tell) -> None:
    found, text = tell("wards")
    assert found["poisson"] < 0.85
    assert found["and a formula of the dispersion"] == pytest.approx(0.92, abs=0.03)
    assert "variance over mean" in text


def test_shares_stay_between_0_and_1(tell) -> None:
    found, text = tell("cover")
    assert found["beta, precision ~ s(elevation)"] == pytest.approx(0.9, abs=0.03)
    assert "Limits of the normal model below 0 or above 1" in text


@pytest.mark.filterwarnings("ignore:The predictors of .* leave the range")
def test_trays_of_few_seeds_are_less_sure(tell) -> None:
    found, text = tell("seeds")
    assert found["normal model of shares"] > 0.1
    assert found["binomial"] < 0.06
    assert "Nothing speaks against it." in text


@pytest.mark.filterwarnings("ignore:The predictors of .* leave the range")
def test_pumps_that_still_run_count(tell) -> None:
    found, text = tell("pumps")
    assert found["and the pair"] < 0.7 * found["main effects"]
    assert found["failures alone"] > 0.1
    assert "hot, high load" in text


@pytest.mark.filterwarnings("ignore:The predictors of .* leave the range")
def test_forecasts_of_readmission_beat_the_mean_and_hospitals_are_shrunk(tell) -> None:
    found, text = tell("hospitals")
    assert found["brier"] < 0.9 * found["same"]
    assert found["fit"] < found["raw"]
    assert found["held"] > 0.6
    assert text.count("% to ") == 5


@pytest.mark.filterwarnings("ignore:The predictors of .* leave the range")
def test_a_map_that_changes_needs_all_three_features(tell) -> None:
    found, _ = tell("air")
    assert found["all interactions"] < 0.6 * found["a map and a daily course"]
    assert found["exact tensor product"] < 0.7 * found["a map and a daily course"]


def test_intervals_are_wide_where_the_spread_is(tell) -> None:
    found, text = tell("demand")
    assert found["mean and scale"] > found["mean only"] + 0.2
    assert found["error of log scale"] < 0.2
    assert "wild" in text


@pytest.mark.filterwarnings("ignore:Values outside the training range")
@pytest.mark.filterwarnings("ignore:The predictors of .* leave the range")
def test_ratings_have_the_chances_that_guests_have(tell) -> None:
    found, text = tell("ratings")
    assert found["error of ordinal"] < 0.6 * found["error of mean and normal spread"]
    assert found["ordinal"] < found["mean and normal spread"]
    assert found["inside"] > 0.6
    assert "guests to learn from" in text


def test_the_true_pair_and_triple_are_ranked_first_and_refined(tell) -> None:
    found, text = tell("triple")
    assert found["pairs"] == "gene_02:gene_09"
    assert found["triples"] == "gene_04:gene_11:gene_17"
    assert found["refined"] < 0.3
    assert found["refined"] < found["screened"]
    assert "ti(gene_04, gene_11, gene_17)" in text


def test_the_season_changes(tell) -> None:
    found, _ = tell("season")
    assert found["changing"] < 0.5 * found["fixed"]
    assert 0.03 < found["share"] < 0.12
    assert found["held"] > 0.8


def test_a_face_adds_what_measurements_cannot_say(tell) -> None:
    found, text = tell("faces")
    assert found["both"] < 0.75 * found["measurements"]
    assert found["both"] < 0.75 * found["faces"]
    assert found["band, both"] < 0.95 * found["band, measurements"]
    assert found["held, both"] > 0.8
    assert "deep(face)" in text


def test_what_is_served_is_what_was_predicted(tell) -> None:
    found, text = tell("served")
    assert found["loaded"] < 1e-6
    assert found["served"] < 1e-5
    assert '"district": "' in text


def test_the_page_has_every_story_with_its_picture_and_command() -> None:
    page = (DOCS / "gallery.md").read_text()
    for story in STORIES:
        assert f"images/gallery/{story}.png" in page
        assert f"python examples/gallery/{story}.py" in page
        assert (DOCS / "images" / "gallery" / f"{story}.png").stat().st_size < 120_000


@pytest.mark.parametrize("story", STORIES)
def test_the_lines_on_the_page_are_those_of_the_script(story: str) -> None:
    page = (DOCS / "gallery.md").read_text()
    script = {line.strip() for line in (GALLERY / f"{story}.py").read_text().split("\n")}
    (section,) = [own for own in page.split("\n## ") if f"python examples/gallery/{story}.py" in own]
    (block,) = re.findall(r"```py\n(.*?)```", section, re.S)
    assert [line for line in block.split("\n") if line.strip() and line.strip() not in script] == []
