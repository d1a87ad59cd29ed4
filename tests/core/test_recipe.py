"""Pipelines that are led to another field, or told apart."""

from shinglefold.recipe import first_difference, retargeted


def test_a_pipeline_led_elsewhere_writes_and_reads_there():
    definition = {
        "processors": [
            {"supershingle": {"fields": ["body"]}},
            {"set": {"field": "kept", "copy_from": "dedup.digest"}},
            {"drop": {"on_failure": [{"supershingle": {"target_field": "dedup"}}]}},
        ]
    }
    assert retargeted(definition, "dedup", "copies") == {
        "processors": [
            {"supershingle": {"fields": ["body"], "target_field": "copies"}},
            {"set": {"field": "kept", "copy_from": "copies.digest"}},
            {"drop": {"on_failure": [{"supershingle": {"target_field": "copies"}}]}},
        ]
    }
    assert definition["processors"][0] == {"supershingle": {"fields": ["body"]}}


def test_fingerprints_of_another_field_stay_where_they_are():
    definition = {
        "processors": [
            {"supershingle": {"target_field": "of_titles"}},
            {"set": {"copy_from": "dedupe.digest"}},
            {"set": {"copy_from": "dedup"}},
        ]
    }
    assert retargeted(definition, "dedup", "copies") == definition


def test_the_first_difference_is_named_by_its_place():
    one = {"processors": [{"set": {"field": "a", "value": 1}}]}
    other = {"processors": [{"set": {"field": "a", "value": 2}}]}
    assert first_difference(one, other) == ("processors[0].set.value 1", "processors[0].set.value 2")
    assert first_difference({}, {"version": 3}) == ("version nothing", "version 3")
    assert first_difference({"processors": [1]}, {"processors": []}) == ("processors [1]", "processors []")
