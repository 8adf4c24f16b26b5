"""Where settings come from, what they refuse, and what is the default of each and of the rest of the specification."""

from __future__ import annotations

import inspect
import warnings
from importlib import import_module
from pathlib import Path

import pytest

from graphmem.errors import InvalidInput
from graphmem.settings import Settings

# Whoever changes a default changes it here. The numbers are sections of the specification, (–) says that it names
# none; a default that differs has the reason beside it, as docs/spec-coverage.md has.
SETTINGS: dict[str, object] = {
    "store": "sqlite:///graphmem.db",  # 1, 9: SQLite
    "store_username": None,  # –
    "store_password": None,  # –
    "store_timeout": 120.0,  # –
    "store_wait": 10.0,  # –
    "sqlite_busy_timeout": 60.0,  # –
    "migrate_shadow_share": 0.0,  # –
    "scope": "default",  # 2.1
    "ontology": None,  # 2.2
    "extractor": "auto",  # 1: a local extractor, if it is installed
    "document_facts": False,  # 12
    "llm": None,  # 1: none is needed
    "contradiction_check": False,  # 2.3: optional
    "resolve_similar": True,  # 3
    "resolve_merge_similarity": 0.85,  # 3
    "resolve_ask_similarity": 0.7,  # 3
    "resolve_questions": 20,  # –
    "note_linking": False,  # 3
    "detect_injection": True,  # 3
    "redact": "off",  # 10
    "redact_key": None,  # –
    "context_turns": 4,  # 3
    "extraction_timeout": None,  # 3: 15 s; it depends on the model: models that think need more (SECONDS below)
    "extraction_concurrency": 4,  # 3
    "extraction_order": "scope",  # –
    "llm_prices": {},  # –
    "extraction_turns": 4,  # –
    "extraction_instructions": None,  # –
    "max_attempts": 3,  # 3
    "retry_delay": 5.0,  # –
    "retry_delay_limit": 14_400.0,  # –
    "retry_days": 7.0,  # –
    "probe_interval": 900.0,  # –
    "claim_seconds": 120.0,  # –
    "batch_size": 1000,  # 3: 500 to 5,000
    "embeddings": "auto",  # 5: all-MiniLM-L6-v2, if it is installed
    "embeddings_download": False,  # 5: fetched once; nothing is downloaded at run time unasked (decision 0020)
    "embedding_timeout": 10.0,  # 4.3
    "vector_index": "store",  # 5
    "qdrant_api_key": None,  # –
    "qdrant_prefix": "graphmem",  # 5: graphmem_entities, graphmem_episodes; several stores may share a server
    "search_limit": 10,  # 5
    "min_confidence": 0.0,  # –
    "expansion_boost": 1.2,  # 5
    "index_wait": 2.0,  # –
    "index_memory_mb": 1000,  # –
    "recall_limit": 10,  # –
    "recall_episodes": 20,  # 4.2: not in the formula; facts of the best episodes answer more questions (a9cc229)
    "recall_strategy": "bfs",  # 4.3
    "max_hops": 2,  # 4.3
    "max_seeds": 10,  # –
    "seed_community_cap": 3,  # 4.1
    "max_frontier": 300,  # 4.3
    "seed_mode": "text",  # 4.1
    "seed_structural_weight": 0.4,  # 4.1
    "fact_text_weight": 2.0,  # 4.2: not in the formula, which ranks all facts of a person alike (decision 0011)
    "temporal_decay_rate": 0.0,  # 4.2
    "lpa_edge_chunk_size": 10_000,  # 6
    "community_algorithm": "auto",  # 6: label propagation makes one community of a conversation
    "community_refresh_interval": 100,  # 3
    "background_scopes": None,  # –
    "eviction": True,  # 3
    "expired_edge_retention_days": None,  # 12
    "min_edge_weight": 0.0,  # 7
    "max_entities": 0,  # 7
    "decay": True,  # 3
    "link_weight_decay_lambda": 0.01,  # 7
    "link_weight_decay_interval": 1.0,  # 7
    "community_refresh": True,  # 3
    "community_assignment": True,  # 3
    "spreading_decay_lambda": 0.85,  # 4.3
    "spreading_max_hops": 3,  # 4.3
    "spreading_activation_threshold": 0.1,  # 4.3
    "spreading_inhibition_threshold": 0.8,  # 4.3
    "spreading_max_activated_nodes": 50,  # 4.3
    "spreading_time_limit": 0.5,  # 4.3
    "telemetry_text": False,  # –
    "context_window": 128_000,  # –
    "context_share": 0.00625,  # 5: 4 %; the best evidence stands first, and who wants more passes budget_tokens
    "compaction_recent": 0.2,  # –
    "compaction_quotes": 0.08,  # –
    "compaction_summaries": 0.08,  # –
    "compaction_facts": 0.04,  # –
    "compaction_cross_session": 0.04,  # –
}

# The others: "module:name" is a constant, "module:function(parameter)" the default of a parameter or a field.
CONSTANTS: dict[str, object] = {
    # 2.1, 2.2
    "graphmem.models:Scope(domain)": "default",
    "graphmem.models:Scope(project_id)": None,
    "graphmem.models:MAX_NAME_BYTES": 512,
    "graphmem.text.normalize:MIN_NAME_LENGTH": 3,
    # 2.3
    "graphmem.models:MAX_RELATION_BYTES": 256,
    "graphmem.models:MAX_FACT_BYTES": 2048,
    "graphmem.models:Edge(edge_type)": "semantic",
    "graphmem.ingest.contradictions:_NEAREST": 10,
    # 3
    "graphmem.llm.providers:SECONDS": 30.0,  # 15 s: see extraction_timeout
    "graphmem.llm.providers:SLOW_SECONDS": 90.0,
    "graphmem.ingest.extract.llm:LLMExtractor(timeout)": None,
    "graphmem.ingest.extract.llm:LLMExtractor(concurrency)": 4,
    "graphmem.ingest.extract.llm:LLMExtractor(max_entities)": 10,
    "graphmem.ingest.extract.llm:LLMExtractor(max_edges)": 15,
    "graphmem.ingest.extract.llm:LLMExtractor(context_bytes)": 2048,
    "graphmem.ingest.extract.spacy.extractor:MAX_ENTITIES": 10,
    "graphmem.ingest.extract.spacy.extractor:MAX_EDGES": 15,
    "graphmem.index.entity_vectors:NEAREST": 5,
    "graphmem.ingest.entity_matching:SimilarEntities(merge_at)": 0.85,
    "graphmem.ingest.entity_matching:SimilarEntities(ask_at)": 0.7,
    "graphmem.ingest.note_links:_MOST_LINKS": 10,
    "graphmem.ingest.note_links:_LEAST_COSINE": 0.85,
    "graphmem.ingest.note_links:NoteLinks(seconds)": 5.0,
    # 4
    "graphmem.text.normalize:MAX_QUERY": 512,
    "graphmem.protocols:NAME_WEIGHT": 10,
    "graphmem.models:ExpandLimits(max_frontier)": 300,
    "graphmem.recall.pagerank:DAMPING": 0.7,
    "graphmem.recall.pagerank:_ROUNDS": 10,
    "graphmem.recall.strategies:SYNONYM_COSINE": 0.8,
    "graphmem.recall.strategies:LEAST_DISTANCE": 0.01,
    "graphmem:GraphMemory.history(limit)": 100,
    # 5
    "graphmem.search.results:SearchOptions(k)": 10,
    "graphmem.search.results:SearchOptions(fusion)": "weighted",
    "graphmem.search.results:SearchOptions(diversity)": 0.0,
    "graphmem.search.results:SearchOptions(expansion_boost)": 1.2,
    "graphmem.search.results:ExpansionConfig(enabled)": True,
    "graphmem.search.results:ExpansionConfig(strategy)": "ppr",
    "graphmem.search.results:ExpansionConfig(boost)": False,
    "graphmem:GraphMemory.search(fusion)": "weighted",
    "graphmem:GraphMemory.search(diversity)": 0.0,
    "graphmem.search.graph_channel:ROUNDS": 4,  # 10: it is on the candidates' neighborhood
    "graphmem.search.names:SAME": 0.8,
    "graphmem.search.pipeline:RRF_K": 60,
    "graphmem.vectors.qdrant:QdrantVectorIndex(prefix)": "graphmem",
    # 6
    "graphmem.communities.detection:DEFAULT_CHUNK": 10_000,
    "graphmem.communities.detection:ROUNDS": 50,
    "graphmem_neo4j.detector:_ROUNDS": 50,
    "graphmem.communities.summaries:TOP_FACTS": 20,
    "graphmem.communities.summaries:MAX_PROMPT_BYTES": 8192,
    "graphmem.communities.summaries:AT_ONCE": 4,
    # 10
    "graphmem.adapters.mcp:MemoryServer.http_app(host)": "127.0.0.1",
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_keyword_beats_variable_beats_file_beats_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().recall_limit == 10
    (tmp_path / "graphmem.toml").write_text("recall_limit = 20\nmax_hops = 3\n")
    assert Settings().recall_limit == 20
    monkeypatch.setenv("GRAPHMEM_RECALL_LIMIT", "30")
    assert (Settings().recall_limit, Settings().max_hops) == (30, 3)
    assert Settings(recall_limit=40).recall_limit == 40


def test_the_default_of_each_setting_is_the_one_listed() -> None:
    assert {name: field.default for name, field in Settings.model_fields.items()} == SETTINGS


@pytest.mark.parametrize(("place", "value"), CONSTANTS.items(), ids=CONSTANTS)
def test_a_default_of_the_specification_that_is_no_setting_is_the_one_listed(place: str, value: object) -> None:
    module, _, path = place.partition(":")
    name, _, parameter = path.rstrip(")").partition("(")
    found: object = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if parameter:
        assert callable(found)
        found = inspect.signature(found).parameters[parameter].default
    assert found == value


def test_another_file_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text('store = "sqlite:///other.db"\n')
    assert Settings.load(path).store == "sqlite:///other.db"


def test_a_file_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"absent\.toml"):
        Settings.load(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recall_limit", 0),
        ("seed_structural_weight", 1.5),
        ("temporal_decay_rate", float("nan")),
        ("temporal_decay_rate", 11.0),
        ("max_attempts", 0),
        ("claim_seconds", 1.1e9),
        ("expired_edge_retention_days", 6e5),
        ("no_such_setting", 1),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_name(name: str, value: float) -> None:
    with pytest.raises(InvalidInput, match=name):
        Settings(**{name: value})


def test_variable_of_a_table_that_is_not_json_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEM_LLM_PRICES", "cheap")
    with pytest.raises(InvalidInput, match="GRAPHMEM_LLM_PRICES: expected JSON"):
        Settings()


@pytest.mark.parametrize(("name", "kept"), [("llm", "anthropic:claude"), ("recall_limit", 7)])
def test_an_empty_variable_counts_as_unset(
    name: str, kept: str | int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "graphmem.toml").write_text('llm = "anthropic:claude"\nrecall_limit = 7\n')
    monkeypatch.setenv(f"GRAPHMEM_{name}".upper(), "")
    assert getattr(Settings(), name) == kept
    assert Settings.origins()[name] == "graphmem.toml"


def test_a_variable_can_set_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEM_LLM", "none")
    assert Settings().llm is None


def test_passwords_are_masked_where_settings_are_shown() -> None:
    shown = Settings(store="neo4j://neo4j:s3cret@db.example:7687").shown()
    assert shown["store"] == "neo4j://neo4j:***@db.example:7687"


def test_an_unknown_name_in_the_file_is_refused_with_the_one_that_was_meant(tmp_path: Path) -> None:
    (tmp_path / "graphmem.toml").write_text('stroe = "memory://"\n')
    with pytest.raises(InvalidInput, match=r"^setting stroe: is unknown; did you mean store\?$"):
        Settings()


def test_a_table_of_settings_is_refused_with_where_they_stand(tmp_path: Path) -> None:
    (tmp_path / "graphmem.toml").write_text('[graphmem]\nstore = "memory://"\n')
    with pytest.raises(InvalidInput, match="settings belong at the top level, not in a table"):
        Settings()


def test_a_variable_that_names_no_setting_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEM_RECAL_LIMIT", "3")
    monkeypatch.setenv("GRAPHMEM_UTTERLY_ELSE", "3")
    with pytest.warns(UserWarning, match="is not a setting") as told:
        Settings()
    assert [str(warning.message).partition("; ")[2] for warning in told] == ["did you mean GRAPHMEM_RECALL_LIMIT?", ""]


def test_variables_of_settings_and_of_the_tests_are_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GRAPHMEM_STORE", "graphmem_scope", "GRAPHMEM_TEST_NEO4J_URL", "GRAPHMEM_DATA"):
        monkeypatch.setenv(name, "value")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Settings()


@pytest.mark.parametrize(("value", "read"), [(False, "off"), ("false", "off"), ("facts", "facts"), ("all", "all")])
def test_redact_says_what_is_redacted(value: object, read: str) -> None:
    assert Settings(redact=value).redact == read


@pytest.mark.parametrize("value", [True, "true", "1", "everything"])
def test_redact_without_saying_what_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"setting redact: .*'facts'.*'all'"):
        Settings(redact=value)


def test_the_key_of_redaction_is_never_shown() -> None:
    assert "s3cret" not in repr(Settings(redact="all", redact_key="s3cret"))
