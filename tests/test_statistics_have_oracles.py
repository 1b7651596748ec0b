"""Every statistic that a record holds, and the test that checks it against an oracle which shares
no code with it.

A new field of a record fails here until it has a row: the test of its value, or a place among the
names.
"""

from __future__ import annotations

import ast
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from metrifair.auditing import records
from metrifair.figures.curves import Curves
from metrifair.figures.selection_rates import GroupRates
from metrifair.tradeoff.points import Point

TESTS = Path(__file__).parent

RECORDS = {
    kind.__name__: kind
    for kind in (
        records.Finding,
        records.Divided,
        records.DividedRates,
        records.WitnessCurve,
        records.Decisions,
        records.AlongNumber,
        records.Measure,
        records.ReliabilityBin,
        records.GroupFigures,
        records.ByGroup,
        records.ProxyEstimate,
        records.ProxyRecord,
        records.Difference,
        records.Look,
        records.Baseline,
        GroupRates,
        Curves,
        Point,
    )
}

NAMES = {
    "Finding": "attribute criterion within groups metric tested_by group_values conditions decided",
    "Decisions": (
        "attribute within threshold rates unknown selected_by favorable favorable_decision "
        "standard conditions"
    ),
    "AlongNumber": "attribute within bands",
    "GroupFigures": "group group_value",
    "ByGroup": "attribute within groups conditions",
    "ProxyEstimate": "figure groups",
    "ProxyRecord": "attribute assumption source estimates corrected_by strata",
    "Difference": "model attribute criterion within groups metric group_values conditions",
    "Look": "look attribute criterion within groups metric group_values conditions baseline exact",
    "Baseline": "attribute criterion within groups metric looks group_values conditions",
    "GroupRates": "group",
    "Point": "strength seed failed family needs_group",
}
"""Fields that name a figure or say where it comes from."""

UNKNOWN = "auditing/test_unknown_names.py::"
MEMBERS = "figures/test_membership_estimates.py::"
PROXY = "auditing/test_proxy_audits.py::"
DIVIDED = "auditing/test_attenuation.py::"
DIVIDED_RATES = f"{DIVIDED}test_divided_rates_and_ratios_keep_the_mean_and_their_bounds"
FINDING, BY_GROUP = "auditing/test_finding_oracles.py::", "auditing/test_by_group.py::"
RATES, RESAMPLING = "figures/test_selection_rates.py::", "auditing/test_audit_resampling.py::"
DESCRIBED = f"{FINDING}test_findings_describe_the_two_groups"
RATED = f"{RATES}test_every_figure_is_that_of_its_definition"
DECIDED = f"{FINDING}test_decisions_differ_by_the_largest_less_the_smallest_rate"
FIGURES = f"{BY_GROUP}test_figures_are_those_of_scikit_learn"
DIFFERED = "auditing/test_difference_oracles.py::test_distances_away_from_zero_differ_as_correlated_normals"
ALONG = "auditing/test_audit_along.py::test_quantiles_and_selection_rates_are_those_of_each_band"
LEVELS = "auditing/test_monitor_oracles.py::"
POOLED = f"{LEVELS}test_the_smaller_group_decides_how_many_looks_a_baseline_pools"
POINTS = "tradeoff/test_evaluate.py::test_a_classifiers_figures_are_those_of_the_libraries"
CREDIT = "auditing/test_standards.py::test_credit_by_hand"
CURVES = (
    "tradeoff/test_evaluate.py::test_curves_are_the_groups_distribution_functions_and_densities"
)
CLUSTERED = "auditing/test_audit_clusters.py::"
WITNESS = "auditing/test_audit_findings.py::test_the_witness_shows_the_gap"

ORACLES = {
    "Finding.sizes": DESCRIBED,
    "Finding.value": "auditing/test_audit_findings.py::test_every_comparison_has_scipys_numbers",
    "Finding.bracket": "auditing/test_audit_out_of_core.py::test_true_distances_lie_in_their_brackets",
    "Finding.unbiased": "auditing/test_audit_distribution.py::test_unbiased_values_are_the_u_statistics",
    "Finding.interval": f"{RESAMPLING}test_intervals_cover_about_as_often_as_they_say",
    "Finding.certified": f"{RESAMPLING}test_certified_bounds_hold_alone_and_all_at_once",
    "Finding.certified_jointly": f"{RESAMPLING}test_joint_bounds_are_wider_and_count_every_distribution_function_once",
    "Finding.p_value": f"{RESAMPLING}test_p_values_of_a_tiny_sample_are_those_of_all_its_permutations",
    "Finding.witness": WITNESS,
    "Finding.cuts": "auditing/test_audit_numbers.py::test_the_worst_cut_and_the_dependence_are_found_and_said",
    "Finding.enough": DESCRIBED,
    "Finding.unknown_name": f"{UNKNOWN}test_intersections_with_an_unknown_part_are_no_headline",
    "Finding.joint_interval": f"{RESAMPLING}test_the_headline_of_many_comparisons_is_not_picked_by_chance",
    "Finding.significant": f"{RESAMPLING}test_the_headline_of_many_comparisons_is_not_picked_by_chance",
    "Finding.at": DESCRIBED,
    "Finding.shares": DESCRIBED,
    "Finding.means": DESCRIBED,
    "Finding.span": DESCRIBED,
    "Finding.cut": "auditing/test_audit_numbers.py::test_the_worst_cut_and_the_dependence_are_found_and_said",
    "Finding.detectable": "figures/test_power.py::test_an_audit_that_finds_nothing_says_what_it_could_have_found",
    "Finding.correlation": "auditing/test_audit_numbers.py::test_the_table_gives_the_dependence_itself",
    "Finding.divided": f"{DIVIDED}test_the_weighted_figure_of_names_is_the_true_one_times_r2",
    "Divided.r2": f"{DIVIDED}test_r2_is_that_within_the_labels_and_strata_that_are_compared",
    "Divided.value": f"{DIVIDED}test_every_distance_of_names_is_divided_to_the_true_one",
    "Divided.interval": f"{DIVIDED}test_ends_of_intervals_are_divided_as_well",
    "Divided.joint_interval": f"{DIVIDED}test_ends_of_intervals_are_divided_as_well",
    "Decisions.divided": f"{DIVIDED}test_rates_of_names_are_divided_to_the_true_ones",
    "DividedRates.r2": DIVIDED_RATES,
    "DividedRates.rates": DIVIDED_RATES,
    "DividedRates.ratios": DIVIDED_RATES,
    "DividedRates.selection_difference": DIVIDED_RATES,
    "DividedRates.selection_ratio": DIVIDED_RATES,
    "DividedRates.selection_ratio_interval": f"{DIVIDED}test_intervals_of_rates_and_ratios_are_divided_at_their_ends",
    "Finding.clusters": f"{CLUSTERED}test_the_minimum_group_size_counts_clusters",
    "WitnessCurve.grid": WITNESS,
    "WitnessCurve.utility": "metrics/test_witness.py::test_the_witness_attains_the_metric",
    "WitnessCurve.expected": WITNESS,
    "Decisions.selection_difference": DECIDED,
    "Decisions.selection_ratio": "auditing/test_audit_decisions.py::test_the_four_fifths_ratio_is_the_exact_fraction",
    "Decisions.selection_ratio_interval": "figures/test_rate_oracles.py::test_every_bound_is_that_of_the_definition",
    "Decisions.true_positive_difference": DECIDED,
    "Decisions.false_positive_difference": DECIDED,
    "Decisions.accuracy_difference": DECIDED,
    "Decisions.reference": f"{RATES}test_the_highest_rate_is_that_of_a_category_that_is_not_left_out",
    "AlongNumber.at": ALONG,
    "AlongNumber.sizes": ALONG,
    "AlongNumber.quantiles": ALONG,
    "AlongNumber.selection_rates": ALONG,
    "AlongNumber.cut": "auditing/test_audit_numbers.py::test_each_distance_names_its_own_worst_cut",
    "Measure.value": FIGURES,
    "Measure.interval": "auditing/test_by_group_oracles.py::test_the_interval_of_an_auc_has_delongs_error",
    "Measure.bracket": f"{BY_GROUP}test_counted_rows_give_brackets_that_hold_the_exact_figures",
    "ReliabilityBin.score": FIGURES,
    "ReliabilityBin.rate": FIGURES,
    "ReliabilityBin.interval": f"{RATES}test_wilsons_interval_solves_its_equation",
    "ReliabilityBin.size": FIGURES,
    "ProxyEstimate.weighted": f"{PROXY}test_every_estimate_is_that_of_its_definition",
    "ProxyEstimate.corrected": f"{PROXY}test_every_estimate_is_that_of_its_definition",
    "ProxyEstimate.divided": DIVIDED_RATES,
    "ProxyEstimate.bounds": f"{MEMBERS}test_bounds_are_the_extremes_of_all_people_that_agree_with_cells",
    "ProxyEstimate.bounds_interval": f"{MEMBERS}test_intervals_of_bounds_have_the_error_of_resamples",
    "ProxyRecord.r2": f"{DIVIDED}test_a_group_against_the_rest_has_an_r2_of_its_own",
    "ProxyRecord.known": f"{PROXY}test_every_estimate_is_that_of_its_definition",
    "ProxyRecord.cells": f"{PROXY}test_every_estimate_is_that_of_its_definition",
    "ProxyRecord.reliability": f"{PROXY}test_reliability_is_the_share_of_known_groups",
    "GroupFigures.size": FIGURES,
    "GroupFigures.base_rate": FIGURES,
    "GroupFigures.auc": "auditing/test_by_group_oracles.py::test_the_interval_of_an_auc_has_delongs_error",
    "GroupFigures.accuracy": FIGURES,
    "GroupFigures.log_loss": "auditing/test_by_group_oracles.py::"
    "test_the_interval_of_a_log_loss_is_that_of_a_weighted_mean",
    "GroupFigures.calibration_error": "auditing/test_by_group_oracles.py::"
    "test_noise_is_taken_off_the_lower_end_of_a_calibration_error",
    "GroupFigures.roc": f"{BY_GROUP}test_a_thinned_roc_curve_stays_on_the_whole_one",
    "GroupFigures.reliability": FIGURES,
    "GroupFigures.clusters": f"{CLUSTERED}test_the_minimum_group_size_counts_clusters",
    "ByGroup.gaps": "auditing/test_by_group_oracles.py::test_the_interval_of_a_gap_holds_for_all_groups_together",
    "Difference.before": DIFFERED,
    "Difference.after": DIFFERED,
    "Difference.difference": DIFFERED,
    "Difference.interval": DIFFERED,
    "Difference.p_value": DIFFERED,
    "Difference.joint_interval": "auditing/test_compare.py::test_verdicts_hold_for_all_differences_at_once",
    "Difference.p_adjusted": "auditing/test_compare.py::test_verdicts_hold_for_all_differences_at_once",
    "Difference.verdict": "auditing/test_compare.py::test_verdicts_hold_for_all_differences_at_once",
    "Look.sizes": POOLED,
    "Look.value": f"{LEVELS}test_intervals_hold_for_all_looks_and_distances_together",
    "Look.interval": f"{LEVELS}test_intervals_hold_for_all_looks_and_distances_together",
    "Look.difference": f"{LEVELS}test_an_alarm_is_a_p_value_up_to_the_level_of_its_look",
    "Look.p_value": f"{LEVELS}test_an_alarm_is_a_p_value_up_to_the_level_of_its_look",
    "Look.level": f"{LEVELS}test_levels_are_shared_by_looks_and_distances_and_add_up_to_less_than_alpha",
    "Look.alarm": f"{LEVELS}test_an_alarm_is_a_p_value_up_to_the_level_of_its_look",
    "Baseline.sizes": POOLED,
    "Baseline.enough": "auditing/test_monitor.py::"
    "test_a_series_that_never_reaches_the_minimum_size_is_not_called_unchanged",
    "Baseline.unknown_name": f"{UNKNOWN}test_comparisons_and_series_do_not_test_them",
    "Baseline.untested": f"{LEVELS}test_the_smaller_group_decides_whether_a_look_is_tested",
    "GroupRates.size": RATED,
    "GroupRates.selection_rate": DECIDED,
    "GroupRates.accuracy": DECIDED,
    "GroupRates.true_positive_rate": DECIDED,
    "GroupRates.false_positive_rate": DECIDED,
    "GroupRates.selected": f"{RATES}test_a_table_by_hand",
    "GroupRates.share": f"{RATES}test_a_table_by_hand",
    "GroupRates.interval": RATED,
    "GroupRates.ratio": RATED,
    "GroupRates.ratio_interval": "figures/test_rate_oracles.py::test_every_bound_is_that_of_the_definition",
    "GroupRates.p_value": RATED,
    "GroupRates.shortfall": RATED,
    "GroupRates.left_out": RATED,
    "GroupRates.few": f"{RATES}test_a_table_by_hand",
    "GroupRates.mean_difference": CREDIT,
    "GroupRates.decile_ratios": CREDIT,
    "GroupRates.clusters": f"{CLUSTERED}test_the_minimum_group_size_counts_clusters",
    "Curves.grid": CURVES,
    "Curves.density": CURVES,
    "Curves.cumulative": CURVES,
    "Point.accuracy": POINTS,
    "Point.unfairness": POINTS,
    "Point.decision_unfairness": POINTS,
    "Point.more": "figures/test_utility.py::test_every_utility_is_that_of_scikit_learn",
    "Point.intervals": "tradeoff/test_evaluate.py::test_the_interval_of_the_accuracy_is_wilsons",
    "Point.errors": "figures/test_utility.py::test_the_standard_error_is_the_spread_over_repeated_samples",
    "Point.marks": "figures/test_utility.py::test_a_model_that_knows_nothing_is_marked_nearly_always",
    "Point.is_noise": "tradeoff/test_choice.py::test_a_gap_that_chance_explains_is_reported_as_below_its_upper_end",
    "Point.overfit": "tradeoff/test_overfitted_gaps.py::test_a_model_that_is_fair_to_its_training_rows_only_is_marked",
}
"""Statistic to test: by hand, by another library, by a closed form, by enumeration, or by a
seeded simulation.
"""

OUT_OF_RECORDS = {
    "booster levels": "boosting/test_level_oracles.py::test_weights_are_repetitions",
    "counts of a state": "auditing/test_counted_oracles.py::test_weighted_sums_of_a_state_are_those_of_its_rows",
    "counts of an engine": "auditing/test_counted_oracles.py::test_sums_of_an_engine_are_those_of_its_rows",
    "decisions of files and tables": "auditing/test_counted_oracles.py::"
    "test_rates_of_audits_count_scores_at_the_threshold",
    "decisions of a state": "auditing/test_counted_oracles.py::test_scores_at_the_threshold_are_positive_decisions",
    "correlation of two audits": "auditing/test_difference_oracles.py::"
    "test_the_correlation_of_two_aucs_is_that_of_delong",
    "barycenter": "postprocessing/test_postprocessing_oracles.py::"
    "test_shifted_groups_meet_at_the_mean_shift_by_their_shares",
    "thresholds": "postprocessing/test_postprocessing_oracles.py::"
    "test_thresholds_are_the_best_whose_rates_differ_by_one_row_more_than_the_tolerance",
    "linear models": "training/test_solver_oracles.py::test_no_classifier_is_worse_than_the_constant",
    "metrics": "metrics/test_closed_forms.py::test_shifted_normals",
    "exact test of unchanged scores": "auditing/test_change_test.py::test_the_p_value_is_that_of_randomly_paired_rows",
    "sign flips": "figures/test_sign_flips.py::test_the_p_value_is_at_least_the_share_of_flips_with_so_large_a_sum",
}
"""Computed values that no record holds."""


@cache
def functions_in(file: str) -> set[str]:
    tree = ast.parse((TESTS / file).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("kind", RECORDS)
def test_every_statistic_has_an_oracle(kind: str) -> None:
    named = set(NAMES.get(kind, "").split())
    known = {name.split(".")[1] for name in ORACLES if name.startswith(f"{kind}.")}
    present = {field.name for field in fields(RECORDS[kind])}
    assert present - known - named == set(), (
        "statistics without an oracle: add a test and its row in ORACLES"
    )
    assert (known | named) - present == set(), "rows of statistics that there are not"
    assert known & named == set()


@pytest.mark.parametrize("statistic", [*ORACLES, *OUT_OF_RECORDS])
def test_its_oracle_is_a_test(statistic: str) -> None:
    file, name = (ORACLES | OUT_OF_RECORDS)[statistic].split("::")
    assert name in functions_in(file), f"{file} has no {name}"
