"""Texts that the scripts of pages show, with places for names and figures; pages embed them as
JSON.
"""

from __future__ import annotations

from metrifair.wording.terms import term_name

PAGE_TEXTS = {
    "score": "score",
    "score_at": "score {score}",
    "density": "density",
    "share_below": "share below",
    "range": "{low} to {high}",
    "versus": "{left} vs {right}",
    # a frontier
    "left_is_fairer": "{name} (left is fairer)",
    "up_is_better": "{name} (up is better)",
    "nothing_drawn": "No model can be drawn",
    "training_failed": "Training failed at this {parameter}: there are no figures to show.",
    "changes_from": "Changes are relative to {row}.",
    "training_state": "Training: {state}.",
    "no_distributions": "There are no distributions for this model.",
    "figures_by_model": "{title}: figures by model",
    "constant_label": "constant predictor",
    "chosen_label": "chosen",
    "key_slider": "at the slider",
    "key_slider_seeds": "at the slider, mean of its seeds",
    "key_model": "model",
    "key_front": term_name("pareto"),
    "key_chosen": "chosen model",
    "key_constant": "constant predictor: the same for everyone",
    "key_alike": "not significantly better than it",
    "key_limit": "limit",
    "key_noise": "not distinguishable from 0",
    # an audit: the finding that is shown
    "where": "{attribute}, among {place}",
    "place": "{within} ({criterion})",
    "showing": "“{left}” and “{right}” by {where}: {metric} {value}.",
    "not_in_file": "The score distributions of this set are not in this file.",
    "groups_drawn": "Only {drawn} of {all} groups are drawn.",
    "distances": "{metric} between groups by {where}. {meaning}",
    "show_fewer": "Show fewer",
    "show_all": "Show all {count} comparisons",
    "at_most": "{text}, at most {bound}",
    "p_at_most": "at most {bound}",
    "mark_value": "measured",
    "mark_interval_low": "{confidence} interval (bootstrap)",
    "mark_divided": "divided by R2",
    "mark_certified": "at most, with {confidence} confidence",
    "mark_certified_jointly": "the same for all findings at once",
    "mark_bracket_low": "proven bracket of the value",
    "beyond_axis": "{mark} (beyond the axis)",
    "witness": "Of all benefits that depend on the score and that this distance considers, this "
    "one has the largest difference between the two groups' means.",
    "no_witness": "This file holds no curve for this finding, but those of the {count} largest "
    "that have one.",
    "benefit": "benefit",
    "benefit_by_score": "benefit by score",
    "average_of": "average of {group}",
    # an audit: the table of findings
    "all_findings": "All findings",
    "page": "Page {page} of {pages}",
    "nothing_compared": "There was nothing to compare.",
    "no_match": "No finding matches.",
    "one_finding": "1 finding.",
    "findings": "{count} findings.",
    "findings_from_to": "{first} to {last} of {count} findings.",
    "findings_order": "Significant findings come first, by the lower ends of their intervals; "
    "then the others, by their rows.",
    "file_lists": "The file lists the first {listed} of {all}; Audit.to_json has all.",
    "open_row": "Open a row for its meaning.",
    "sentences_left_out": "To stay small, this file has the sentences of the largest findings "
    "only.",
    "by_where": "By {where}.",
    "show_in_charts": "Show in the charts",
    "significance_by": "{significance}, by {test}",
    "figure_rows": "Rows of {group}",
}
"""The texts by the names that the scripts use."""
