import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shinglefold.errors import ConfigError
from shinglefold.model.scheme import PRESETS, SketchOptions
from shinglefold.sketch.b_bit_minhash import standard_error
from shinglefold.sketch.layout_advice import (
    Requirements,
    appraise,
    needed_hash_bits,
    probability,
    resemblance_after,
    width_for,
)

_SKETCHES = [one.sketch for one in PRESETS.values()]


@pytest.mark.parametrize(("groups", "size", "shared"), [(6, 14, 2), (21, 4, 1), (14, 6, 1), (10, 3, 3)])
@pytest.mark.parametrize("resemblance", [0.5, 0.8, 0.95])
def test_the_formula_agrees_with_a_simulation(resemblance, groups, size, shared):
    drawn = np.random.default_rng(1).random((20_000, groups, size)) < resemblance
    share = (drawn.all(axis=2).sum(axis=1) >= shared).mean()
    expected = probability(resemblance, groups, size, shared)
    assert abs(share - expected) < 4 * np.sqrt(max(expected * (1 - expected), 1e-4) / 20_000)


@given(st.integers(1, 64), st.integers(1, 20), st.integers(0, 5))
def test_the_probability_rises_with_resemblance_from_nothing_to_certainty(groups, size, shared):
    curve = probability(np.linspace(0, 1, 50), groups, size, shared)
    assert (np.diff(curve) >= -1e-12).all()
    assert curve[0] == (1.0 if shared == 0 else 0.0)
    assert curve[-1] == (1.0 if shared <= groups else 0.0)
    assert isinstance(probability(0.5, groups, size, shared), float)


@given(
    st.floats(0.3, 0.97),
    st.integers(1, 4),
    st.integers(2, 10**9),
    st.floats(0.0, 1e-3),
    st.sampled_from(_SKETCHES),
)
def test_a_layout_is_appraised_by_the_formula_and_by_its_own_signature(
    resemblance, shared, documents, near_share, sketch
):
    needs = Requirements(resemblance, documents=documents, near_share=near_share)
    advice = appraise(needs, sketch, shared)
    assert advice.found == probability(resemblance, sketch.groups, sketch.group_size, shared)
    assert (advice.values, advice.bits) == (sketch.values, sketch.bits)
    assert advice.error == standard_error(resemblance, sketch.values, sketch.bits)
    assert resemblance - advice.threshold == pytest.approx(min(resemblance, 2 * advice.error))
    assert advice.strangers >= appraise(needs, sketch, shared + 1).strangers


def test_the_curve_of_an_advice_passes_through_its_promise():
    advice = appraise(Requirements(resemblance=0.8), SketchOptions(), 1)
    resemblance, found = advice.curve(steps=10)
    assert resemblance.tolist() == pytest.approx([i / 10 for i in range(11)])
    assert found[8] == pytest.approx(advice.found)


@pytest.mark.parametrize(
    "needs",
    [{"resemblance": 1.0}, {"miss": 0.0}, {"documents": 1}, {"near_share": 2.0}, {"strangers": 0.0}],
)
def test_requirements_that_make_no_sense_are_refused(needs):
    with pytest.raises(ConfigError):
        Requirements(**needs)


def test_thirty_bits_suffice_for_ten_million_documents():
    assert needed_hash_bits(10_000_000) == 30
    assert appraise(Requirements(documents=10_000_000), SketchOptions(), 1).keyword_bits == 30


@pytest.mark.parametrize("width", [1, 2, 5])
def test_the_resemblance_left_by_edits_is_what_edits_leave(width):
    from shinglefold.sketch.shingles import resemblance, shingle_set

    rng = np.random.default_rng(1)
    text = rng.integers(1, 2**64, 100_000, dtype=np.uint64)
    edited = np.where(rng.random(len(text)) < 0.05, rng.integers(1, 2**64, len(text), dtype=np.uint64), text)
    exact = resemblance(shingle_set(text, width), shingle_set(edited, width))
    assert exact == pytest.approx(resemblance_after(0.05, width), abs=0.01)


@given(st.floats(0.0, 0.4), st.floats(0.05, 0.95))
def test_the_advised_width_is_the_widest_that_reaches_the_resemblance(replaced, wanted):
    width = width_for(replaced, wanted)
    assert width == 1 or resemblance_after(replaced, width) >= wanted
    assert width == 10 or resemblance_after(replaced, width + 1) < wanted
