"""The conformance kit fails stores that have a bug, by a test that names it, and passes one that has none."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import graphmem.testing
from graphmem.testing import GraphBackendTests, StoreTests

pytest_plugins = ["pytester"]

BROKEN = {
    name: Path(__file__).with_name(f"{name}.py") for name in ("broken_backends", "broken_episodes", "broken_values")
}

# numpy can't be loaded twice, and a run inside of a run forgets the modules that it loaded: so it is loaded here
_LOADED_HERE = (np,)

MODULE = """
from {module} import {store}
from graphmem.testing import {kit}
from hypothesis import Phase, settings

class Test({kit}):
    stateful_settings = settings(
        max_examples=400,
        stateful_step_count=40,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # that there is a failure is enough, it needn't be shrunk
        report_multiple_bugs=False,
    )

    def open_store(self, tmp_path):
        return {store}()
"""

# store, the part of the kit that is run, the tests of which each has to fail
CAUGHT = [
    ("IgnoresKinds", "EdgeQueryTests", {"test_a_field_alone_restricts[kinds]"}),
    ("HidesWhatWasInferred", "TraversalTests", {"test_an_inferred_edge_is_marked"}),
    ("IndexesWhatWasInferred", "UnindexedTests", {"test_inferred_facts_are_not_indexed"}),
    ("LeaksAcrossScopes", "IsolationTests", {"test_a_read_sees_nothing_of_another_scope[get_edges]"}),
    ("LeaksThroughTheQueue", "IsolationTests", {"test_a_read_of_no_scope_sees_nothing[claim_episodes]"}),
    ("LosesSupersession", "ExpiryTests", {"test_an_expiry_sets_the_end_and_nothing_else"}),
    ("ExpiresTwice", "ExpiryTests", {"test_a_second_expiry_changes_nothing"}),
    ("ExpiryRewritesHistory", "ExpiryTests", {"test_an_expiry_sets_the_end_and_nothing_else"}),
    ("ForgetsWhoEndedAFact", "ExpiryTests", {"test_an_expiry_sets_the_end_and_nothing_else"}),
    ("ForgetsStatedBeginnings", "EdgeTests", {"test_every_field_of_an_edge_comes_back_as_it_was_written"}),
    ("FindsSupersededFactsOnly", "EdgeQueryTests", {"test_a_field_alone_restricts[ended_by]"}),
    ("CorroborationRewritesHistory", "ExpiryTests", {"test_a_corroboration_touches_nothing_else"}),
    ("ForgetsAHop", "TraversalTests", {"test_each_hop_goes_one_edge_further_both_ways[2-nodes2-edges2]"}),
    ("IgnoresLimits", "EdgeQueryTests", {"test_a_page_of_edges_holds_as_many_rows_as_the_limit"}),
    ("IgnoresTheFrontierLimit", "TraversalLimitTests", {"test_the_frontier_limits_every_hop"}),
    ("AliasInDisplayCase", "AliasTests", {"test_an_alias_is_kept_as_it_was_given_whatever_the_display_name"}),
    (
        "LosesWritesOfThreads",
        "ThreadTests",
        {"test_in_threads_a_transaction_reads_and_writes_with_no_other_writer_between"},
    ),
    ("SkipsAtPageBoundaries", "EdgeQueryTests", {"test_paging_of_edges_neither_skips_nor_repeats[2]"}),
    ("IgnoresWhatWasKnown", "TimeTests", {"test_the_versions_of_a_fact_each_show_at_their_time"}),
    ("CountsInTwoSteps", "ThreadTests", {"test_retrievals_of_many_threads_are_all_counted"}),
    ("WritesInParts", "AtomicityTests", {"test_a_write_that_fails_in_one_part_leaves_no_trace_of_the_others[edges]"}),
    ("UndoesNothing", "AtomicityTests", {"test_a_nested_transaction_ends_with_the_outer_one"}),
    ("GivesAnEpisodeToTwo", "ThreadTests", {"test_in_threads_claimers_never_share_an_episode"}),
    ("IgnoresOtherProcesses", "QueueTests", {"test_a_scope_in_which_another_process_has_claims_is_left_out[True]"}),
    ("SwallowsConflicts", "EntityTests", {"test_a_name_and_type_that_another_entity_holds_is_a_conflict"}),
    (
        "TakesTextForAPattern",
        "EdgeQueryTests",
        {"test_text_is_looked_for_as_it_stands_in_fact_or_relation[%-expected0]"},
    ),
    ("RoundsTimes", "EdgeTests", {"test_every_field_of_an_edge_comes_back_as_it_was_written"}),
    ("StoresEpisodesAgain", "EpisodeTests", {"test_an_external_id_is_stored_once"}),
    ("LosesAttachments", "EpisodeTests", {"test_every_field_of_an_episode_comes_back_as_it_was_written"}),
    ("ForgetsFormerMembers", "MembershipTests", {"test_members_are_those_of_the_moment[as_of2-members2]"}),
    ("LeaksTraces", "IsolationTests", {"test_a_read_sees_nothing_of_another_scope[find_recalls by entity]"}),
    (
        "DropsMembersOfAChangedCommunity",
        "CommunityTests",
        {"test_a_community_is_replaced_by_id_and_keeps_its_members"},
    ),
    (
        "LeavesMentionsOfForgottenEpisodes",
        "ErasureTests",
        {"test_an_episode_goes_with_all_that_names_it_and_its_facts_stay"},
    ),
    (
        "ClearsWithoutAGeneration",
        "ErasureTests",
        {"test_the_index_of_a_cleared_scope_never_has_a_generation_again"},
    ),
    ("ClearsTooMuch", "ErasureTests", {"test_a_scope_is_cleared_whole_and_no_other_is"}),
    ("FadesWhatIsInUse", "DecayTests", {"test_what_was_retrieved_of_late_keeps_its_count"}),
    ("FadesTwice", "DecayTests", {"test_a_count_fades_no_further_than_since_it_faded_last"}),
    ("HidesWhatFactsAreAbout", "IdleTests", {"test_an_entity_is_idle_without_active_facts_and_unseen"}),
    ("LeaksMerges", "IsolationTests", {"test_a_read_sees_nothing_of_another_scope[find_merges by entity]"}),
    ("JobStatesOfOneScopeForAll", "JobStateTests", {"test_job_states_of_one_job_in_two_scopes_are_apart"}),
    ("ReadsOnInSnapshots", "ThreadTests", {"test_all_reads_of_a_snapshot_are_of_one_state"}),
    ("NeverEndsEpisodes", "LifetimeTests", {"test_an_end_and_an_expiry_are_set_and_taken_back"}),
    ("NeverExpires", "LifetimeTests", {"test_an_end_and_an_expiry_are_set_and_taken_back"}),
    ("FindsWhatIsOver", "LifetimeTests", {"test_episodes_are_selected_by_what_can_be_found_of_them"}),
    ("BringsBackWhatHasExpired", "LifetimeTests", {"test_an_episode_of_the_past_is_found_unless_it_has_expired"}),
    ("SweepsTooMuch", "LifetimeTests", {"test_episodes_are_selected_by_what_can_be_found_of_them"}),
    ("DeniesEnds", "IndexNewsTests", {"test_news_tell_whether_an_episode_ends_or_expires"}),
    ("DropsWhatHasNoValue", "FilterTests", {"test_metadata_is_compared_like_the_definition"}),
    ("TakesPrefixesForPatterns", "FilterTests", {"test_a_prefix_of_sessions_is_compared_like_the_definition"}),
    ("IgnoresTheMark", "MoveTests", {"test_a_write_under_another_mark_is_refused[stale-write]"}),
    ("KeepsUndoneJobStates", "AtomicityTests", {"test_a_nested_transaction_ends_with_the_outer_one"}),
    ("ReleasesByPrefix", "QueueTests", {"test_what_is_released_can_be_claimed"}),
    ("LeavesMovedFacts", "TraversalTests", {"test_a_moved_fact_is_followed_from_its_new_ends_only"}),
    ("OrdersByBeginningAlone", "EdgeQueryTests", {"test_newest_first_is_by_valid_from_then_recorded_at_then_id"}),
    (
        "KeepsExternalIds",
        "ErasureTests",
        {
            "test_an_external_id_is_free_when_its_episode_is_gone[removed]",
            "test_an_external_id_is_free_when_its_episode_is_gone[cleared]",
        },
    ),
    ("ReadsScopeByScope", "EpisodeTests", {"test_paging_of_episodes_neither_skips_nor_repeats[2]"}),
    ("FindsIdsScopeByScope", "EpisodeTests", {"test_paging_of_episodes_neither_skips_nor_repeats[2]"}),
    (
        "ListsSessionsByTheirEpisodes",
        "SessionTests",
        {"test_paging_of_sessions_is_in_the_order_of_code_points[2]"},
    ),
    ("CountsAllOfASession", "SessionTests", {"test_episodes_that_do_not_match_are_no_part_of_a_session"}),
    ("TakesNoSessionForOne", "EpisodeTests", {"test_before_an_episode_are_those_of_its_session_and_scope"}),
    ("TakesSessionsOfOneNameForOne", "EpisodeTests", {"test_before_an_episode_are_those_of_its_session_and_scope"}),
    ("TakesEmptyForAbsent", "OddInputTests", {"test_an_empty_text_is_not_an_absent_one"}),
    (
        "ReturnsItsMetadata",
        "EpisodeTests",
        {"test_changing_an_episode_that_was_given_or_read_changes_nothing_in_the_store"},
    ),
    ("LeasesInSeconds", "QueueTests", {"test_a_lease_ends_at_its_time"}),
    ("ClaimsScopeByScope", "QueueTests", {"test_the_oldest_ids_are_claimed_first"}),
    (
        "RedactsInAnyScope",
        "IsolationTests",
        {"test_a_write_refuses_ids_of_another_scope_and_changes_nothing[redaction]"},
    ),
    ("NumbersEntriesBeforeItsTurn", "ThreadTests", {"test_in_threads_a_reader_of_the_index_misses_no_entry"}),
    (
        "MovesWithoutWaiting",
        "MoveTests",
        {"test_a_mark_is_set_when_transactions_of_the_former_one_have_ended"},
    ),
    (
        "ReadsOnePageOfTheUnindexed",
        "UnindexedTests",
        {
            "test_rows_without_an_entry_are_found_behind_an_id[fact]",
            "test_rows_without_an_entry_are_found_behind_an_id[entity]",
        },
    ),
    ("FindsEntriesAsAsked", "IndexTests", {"test_entries_are_found_in_the_order_of_their_keys"}),
    ("FadesOnePage", "DecayTests", {"test_all_counts_fade_page_by_page"}),
    ("FadesTheSamePage", "DecayTests", {"test_all_counts_fade_page_by_page"}),
    ("LosesAddedAliases", "MergeLedgerTests", {"test_every_field_of_a_merge_comes_back_as_it_was_written"}),
    ("StoresNumbersAsDoubles", "EntityTests", {"test_every_field_of_an_entity_comes_back_as_it_was_written"}),
    ("StoresNumbersAsDoubles", "EdgeTests", {"test_every_field_of_an_edge_comes_back_as_it_was_written"}),
    (
        "KeepsWhatItIsGiven",
        "EntityTests",
        {"test_changing_an_entity_that_was_given_or_read_changes_nothing_in_the_store"},
    ),
    (
        "LimitsAliasesAndWordsTogether",
        "SearchTests",
        {"test_the_limit_is_one_for_all_scopes_and_counts_aliases_and_words_apart[2]"},
    ),
    (
        "LimitsEachScope",
        "SearchTests",
        {"test_the_limit_is_one_for_all_scopes_and_counts_aliases_and_words_apart[2]"},
    ),
    (
        "ExcludesTheMomentOfIdling",
        "IdleTests",
        {
            "test_an_entity_is_idle_from_the_moment_on[last_seen_at]",
            "test_an_entity_is_idle_from_the_moment_on[recorded_at]",
        },
    ),
    ("OrdersTiesByNewestId", "IdleTests", {"test_the_least_connected_come_first_then_those_seen_longest_ago"}),
    ("KeepsTimesAsDoubles", "TimeTests", {"test_times_before_1970_and_far_ahead_keep_their_order"}),
]

STORES = list(dict.fromkeys(store for store, _, _ in CAUGHT))

# bugs that need threads, no scope at all, values or times that random operations don't have, or more than seconds
NOT_RANDOM = {
    "LosesWritesOfThreads",
    "ReadsOnInSnapshots",
    "CountsInTwoSteps",
    "GivesAnEpisodeToTwo",
    "LeaksThroughTheQueue",
    "LeaksAcrossScopes",
    "IgnoresWhatWasKnown",
    "ClearsWithoutAGeneration",
    "BringsBackWhatHasExpired",
    "SweepsTooMuch",
    "DeniesEnds",
    "DropsWhatHasNoValue",
    "IgnoresOtherProcesses",
    "IgnoresTheMark",
    "KeepsUndoneJobStates",
    "ReleasesByPrefix",
    "LeavesMovedFacts",
    "OrdersByBeginningAlone",
    "KeepsExternalIds",
    "FindsIdsScopeByScope",
    "TakesNoSessionForOne",
    "TakesSessionsOfOneNameForOne",
    "TakesEmptyForAbsent",
    "ReturnsItsMetadata",
    "LeasesInSeconds",
    "NumbersEntriesBeforeItsTurn",
    "MovesWithoutWaiting",
    "ReadsOnePageOfTheUnindexed",
    "FindsEntriesAsAsked",
    "FadesOnePage",
    "FadesTheSamePage",
    "LosesAddedAliases",
    "StoresNumbersAsDoubles",
    "KeepsWhatItIsGiven",
    "LimitsAliasesAndWordsTogether",
    "LimitsEachScope",
    "ExcludesTheMomentOfIdling",
}


# bugs that communities and recall traces show
GROUPS = {"ForgetsFormerMembers", "LeaksTraces", "DropsMembersOfAChangedCommunity"}
# bugs that upkeep shows
UPKEEP = {
    "IndexesWhatWasInferred",
    "LeavesMentionsOfForgottenEpisodes",
    "ClearsTooMuch",
    "FadesWhatIsInUse",
    "FadesTwice",
    "HidesWhatFactsAreAbout",
    "LeaksMerges",
    "JobStatesOfOneScopeForAll",
    "RedactsInAnyScope",
    "OrdersTiesByNewestId",
}


def failing(pytester: pytest.Pytester, kit: str, store: str, *options: str) -> tuple[set[str], int]:
    """Run a part of the kit on a store; return (names of the tests that failed, how many passed)."""
    _write_module(pytester, kit, store)
    run = pytester.inline_run("-p", "no:cacheprovider", "-q", *options)  # pyright: ignore[reportUnknownMemberType]
    passed, _, failed = run.listoutcomes()
    assert all(report.when == "call" for report in failed), [report.longrepr for report in failed]
    return {report.nodeid.split("::")[-1] for report in failed}, len(passed)


def _write_module(pytester: pytest.Pytester, kit: str, store: str) -> None:
    for path in BROKEN.values():
        shutil.copy(path, pytester.path)
    [module] = [name for name, path in BROKEN.items() if f"\nclass {store}(" in path.read_text("utf-8")]
    pytester.makepyfile(MODULE.format(module=module, kit=kit, store=store))


@pytest.mark.parametrize(("store", "kit", "tests"), CAUGHT, ids=[f"{store}-{kit}" for store, kit, _ in CAUGHT])
def test_a_bug_fails_the_test_that_is_about_it(
    pytester: pytest.Pytester, store: str, kit: str, tests: set[str]
) -> None:
    failed, passed = failing(pytester, kit, store)
    assert tests <= failed
    assert passed > 0


@pytest.mark.full
@pytest.mark.parametrize("store", [store for store in STORES if store not in NOT_RANDOM])
def test_a_bug_is_found_by_random_operations(pytester: pytest.Pytester, store: str) -> None:
    kit = "StatefulGroupTests" if store in GROUPS else "StatefulUpkeepTests" if store in UPKEEP else "StatefulTests"
    failed, passed = failing(pytester, kit, store)
    assert (len(failed), passed) == (1, 0)


@pytest.mark.full
def test_a_sound_store_passes_the_whole_kit(pytester: pytest.Pytester) -> None:
    failed, passed = failing(pytester, "GraphBackendTests", "Sound", "-k", "not random_operations")
    assert failed == set()
    assert passed > 400


def test_a_failing_comparison_of_random_operations_shows_both_sides(pytester: pytest.Pytester) -> None:
    _write_module(pytester, "StatefulTests", "IgnoresKinds")
    run = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-q")
    run.stdout.re_match_lines([r"E +(AssertionError: )?assert .* == .*"])


def test_every_broken_store_is_tried() -> None:
    source = "".join(path.read_text("utf-8") for path in BROKEN.values())
    assert re.findall(r"^class (\w+)\(Sound\)", source, flags=re.MULTILINE) == STORES


def test_no_test_of_the_kit_hides_another_of_the_same_name() -> None:
    parts = [part for part in GraphBackendTests.__mro__ if issubclass(part, StoreTests)]
    names = Counter(name for part in parts for name in vars(part) if name.startswith("test_"))
    assert [name for name, times in names.items() if times > 1] == []


def test_the_kit_has_every_part_that_it_publishes() -> None:
    published = {name for name in graphmem.testing.__all__ if name.endswith("Tests")}
    assert published == {part.__name__ for part in GraphBackendTests.__mro__ if issubclass(part, StoreTests)}
