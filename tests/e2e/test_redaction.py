"""``redact="all"``: no byte of a secret is in any file of the store, and none is sent to a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import OpenMemory
from langchain_core.messages import HumanMessage

from graphmem import Attachment, Document, Embeddings, GraphMemory, InvalidInput
from graphmem.adapters.langchain import GraphMemoryChatMessageHistory
from graphmem.models import Properties
from graphmem.protocols import ExtractedEdge, ExtractedEntity, Extraction, ExtractionRequest
from tests.e2e.word_vectors import WordVectors

SECRETS = {
    "mail": "maya.zq1@example.com",
    "mail of the speaker": "zq2.speaker@example.com",
    "mail as a session": "zq3.session@example.com",
    "mail as an id": "zq4.id@example.com",
    "phone": "+1 415 555 2671",
    "phone in metadata": "+49 30 90182099",
    "phone in an attachment": "+49 30 90182077",
    "card": "4111 1111 1111 1111",
    "card as a number": "5555555555554444",
    "iban": "DE89 3704 0044 0532 0130 00",
    "ip": "203.0.113.77",
    "ssn": "219-09-9999",
    "password": "hunter2zq",
    "password of a wifi": "bluemonkeyzq",
    "pin": "907142",
    "url": "s3cretzq",
    "openai": "sk-" + "proj-Zq1234567890abcdefghij",
    "aws": "AKIA" + "ZQ7EXAMPLEZQ7EXA",
    "github": "ghp_" + "zq3456789012345678901234567890123456",
    "token": "xoxb-" + "123456789012-zqzqzqzqzqzq",
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiJ6cSJ9.zq1234567890",
}
S = SECRETS


class Listening(WordVectors):
    """An embedding model that notes what it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.sent += texts
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        self.sent.append(text)
        return super().embed_query(text)


class Careless:
    """Invents a fact with a secret for each text, and fails for some with one in the error."""

    name = "careless"
    batch_size = 4

    def __init__(self) -> None:
        self.sent: list[str] = []

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        self.sent += [repr(request) for request in requests]
        return [self._one(request.episode.text) for request in requests]

    def _one(self, text: str) -> Extraction | Exception:
        if "fails" in text:
            return RuntimeError(f"401: {S['openai']} isn't a key")
        edge = ExtractedEdge("Maya", "has_password", S["password of a wifi"], fact=f"Her password is {S['password']}")
        return Extraction((ExtractedEntity("Maya", summary=f"mail {S['mail']}"), ExtractedEntity(S["jwt"])), (edge,))


SENTENCES = (
    "Please write to {mail}, or call {phone} if that is too slow.",
    "I pay with card {card}, and the rent goes to {iban} each month.",
    "We log in from {ip}, and the form wanted my SSN {ssn}.",
    "My password is {password}, the wifi password is {password of a wifi}, and the PIN: {pin}.",
    "The database of the shop is at postgres://me:{url}@db.example.com, as Tom told us.",
    "Tom uses the key {openai} at home, and at work he has {aws} for the same thing.",
    "The build wants {github} and the chat wants {token}, which nobody should ever see.",
    "The session of Maya was {jwt}, and her other card is {card as a number}.",
)


def fill(memory: GraphMemory) -> None:
    """Tell every secret in every way that a memory takes."""
    speaker, session_id = S["mail of the speaker"], S["mail as a session"]
    sentences = [sentence.format_map(S) for sentence in SENTENCES]
    for number, sentence in enumerate(sentences):
        external_id = f"{S['mail as an id']}/{number}"
        memory.remember(sentence, speaker=speaker, session_id=session_id, external_id=external_id)
    text = "\n".join(sentences)
    metadata: Properties = {"call": S["phone in metadata"], "card": int(S["card as a number"])}
    scan = Attachment(kind="image", name=f"{S['phone in an attachment']}.png", description=f'"{sentences[3]}"')
    pages = [
        Document(text=sentence, title=f"Page of {S['mail']}", metadata=metadata, attachments=(scan,))
        for sentence in sentences
    ]
    memory.ingest([*pages, "This fails for the time being, said Maya."])
    memory.add_facts(
        [
            {"subject": "Maya", "relation": "has_mail", "object": S["mail"], "fact": f"Maya has {S['mail']}"},
            {"subject": "Maya", "relation": "works_at", "object": "Globex", "metadata": {"from": S["ip"]}},
            {
                "subject": S["mail of the speaker"],
                "relation": "knows",
                "object": "Maya",
                "source": S["mail as an id"] + "/2",
            },
            ("Maya", "has_password", S["password of a wifi"]),
            ("Maya", "has_pin", S["pin"]),
        ]
    )
    history = GraphMemoryChatMessageHistory(memory, S["mail as a session"], user=S["mail of the speaker"])
    history.add_messages([HumanMessage(sentence, id=f"message-{i}") for i, sentence in enumerate(sentences)])
    memory.flush()
    memory.recall(f"Who is {S['mail']} of Maya? {text}", trace=True)
    memory.search(f"What about {S['phone']}? {text}", trace=True)
    memory.context(text)
    memory.admin.refresh_communities()
    memory.communities(text)
    memory.context(f"What do you know about {S['phone']} in general?")
    memory.admin.traces()


def forms(secret: str) -> list[bytes]:
    """Return how a secret may be written: as it is, lower-case, without separators, percent-encoded."""
    compact = secret.replace(" ", "").replace("-", "") if " " in secret or secret[0].isdigit() else secret
    return [form.encode() for form in {secret, secret.lower(), compact, secret.replace("@", "%40")}]


def told(data: bytes) -> list[str]:
    return [name for name, secret in SECRETS.items() if any(form in data for form in forms(secret))]


@pytest.fixture
def listening() -> Listening:
    return Listening()


@pytest.fixture
def redacting(open_memory: OpenMemory, sqlite_file: Path, listening: Listening) -> GraphMemory:
    model: Embeddings = listening
    return open_memory(
        f"sqlite:///{sqlite_file}",
        extractor=Careless(),
        embeddings=model,
        redact="all",
        redact_key="key",
        max_attempts=1,
    )


def test_no_byte_of_a_secret_is_in_any_file_of_the_store(redacting: GraphMemory, sqlite_file: Path) -> None:
    fill(redacting)
    kept = {path.name: told(path.read_bytes()) for path in sqlite_file.parent.iterdir()}
    assert {"memory.db", "memory.db-wal"} <= set(kept)
    redacting.close()
    kept |= {f"{path.name}, closed": told(path.read_bytes()) for path in sqlite_file.parent.iterdir()}
    assert {name: found for name, found in kept.items() if found} == {}


def test_the_same_secrets_are_in_the_file_without_redaction(open_memory: OpenMemory, sqlite_file: Path) -> None:
    memory = open_memory(f"sqlite:///{sqlite_file}", extractor=Careless(), embeddings="none", max_attempts=1)
    fill(memory)
    memory.close()
    assert told(sqlite_file.read_bytes()) == list(SECRETS)


def test_no_secret_is_sent_to_a_model_or_told_as_an_error(
    open_memory: OpenMemory, sqlite_file: Path, listening: Listening, caplog: pytest.LogCaptureFixture
) -> None:
    careless = Careless()
    model: Embeddings = listening
    memory = open_memory(
        f"sqlite:///{sqlite_file}", extractor=careless, embeddings=model, redact="all", redact_key="key", max_attempts=1
    )
    fill(memory)
    assert len(careless.sent) > 2 * len(SENTENCES)
    assert len(listening.sent) > len(SENTENCES)
    assert told("\n".join([*careless.sent, *listening.sent]).encode()) == []
    assert [error.error for error in memory.stats().errors] == ["RuntimeError: 401: [key] isn't a key"]
    assert told(caplog.text.encode()) == []


def test_what_stands_around_a_secret_is_found_and_its_kind_is_told(redacting: GraphMemory) -> None:
    redacting.remember(f"The wifi in Lisbon: password is {S['password']}, ask {S['mail']}")
    assert (
        redacting.search("wifi in Lisbon").found[0].episode.text
        == "The wifi in Lisbon: password is [password], ask [email]"
    )


def test_ids_that_are_personal_go_on_naming_what_they_name(redacting: GraphMemory) -> None:
    session = S["mail as a session"]
    receipt = redacting.remember("hello", session_id=session, external_id=S["mail as an id"])
    assert redacting.remember("hello", external_id=S["mail as an id"]).created is False
    assert [episode.id for episode in redacting.session(session)] == [receipt.episode_id]
    redacting.add_facts([(S["mail"], "works_at", "Globex")])
    assert len(redacting.facts(S["mail"])) == 1
    assert redacting.forget(session=session).episodes == 1
    assert redacting.forget(S["mail"]).facts == 1


def test_a_personal_name_of_a_scope_is_refused(redacting: GraphMemory) -> None:
    with pytest.raises(InvalidInput, match=r"scope: '\[email\]'"):
        redacting.in_scope("maya@example.com")


def test_rows_with_a_secret_are_not_imported(
    open_memory: OpenMemory, redacting: GraphMemory, tmp_path: Path, sqlite_file: Path
) -> None:
    plain = open_memory("memory://", embeddings="none", extractor="none")
    plain.remember(f"Call {S['phone']}")
    plain.admin.export(tmp_path / "plain.jsonl")
    with pytest.raises(InvalidInput, match=r"line 2: .*\[phone\].*redact='all' doesn't store"):
        redacting.admin.import_(tmp_path / "plain.jsonl")
    (tmp_path / "plain.jsonl").unlink()
    redacting.close()
    assert told(sqlite_file.read_bytes()) == []


def test_what_was_redacted_can_be_exported_and_imported(
    open_memory: OpenMemory, redacting: GraphMemory, tmp_path: Path
) -> None:
    fill(redacting)
    redacting.admin.export(tmp_path / "redacted.jsonl")
    assert told((tmp_path / "redacted.jsonl").read_bytes()) == []
    other = open_memory(
        f"sqlite:///{tmp_path}/other.db", extractor="none", embeddings="none", redact="all", redact_key="key"
    )
    other.admin.import_(tmp_path / "redacted.jsonl")
    assert other.admin.checksum() == redacting.admin.checksum()


def test_a_speaker_is_forgotten_by_the_name_that_is_not_stored(open_memory: OpenMemory) -> None:
    memory = open_memory("memory://", embeddings="none", redact="all", redact_key="key")
    memory.remember("The weather is awful.", speaker="zq2.speaker@example.com")
    assert memory.forget(speaker="zq2.speaker@example.com").episodes == 1
    assert memory.stats().episodes == 0


def test_an_entity_is_found_by_the_name_that_is_not_stored(open_memory: OpenMemory) -> None:
    memory = open_memory("memory://", embeddings="none", redact="all", redact_key="key")
    memory.add_facts([("zq2.person@example.com", "works_at", "Globex")])
    [found] = memory.entities("zq2.person@example.com")
    assert [one.entity.id for one in memory.admin.entity_counts("zq2.person@example.com")] == [found.id]
    assert memory.facts("zq2.person@example.com")


@pytest.mark.parametrize(
    ("redact", "text", "fact"), [("off", True, True), ("facts", True, False), ("all", False, False)]
)
def test_each_choice_redacts_what_it_says(
    open_memory: OpenMemory, store_url: str, redact: str, text: bool, fact: bool
) -> None:
    memory = open_memory(store_url, redact=redact, embeddings="none")
    memory.remember("Maya | works_at | Globex # ask maya@example.com")
    memory.flush()
    told_text = memory.search("Globex").found[0].episode.text
    told_fact = memory.facts("Maya")[0].fact
    assert ("maya@example.com" in told_text, "maya@example.com" in told_fact) == (text, fact)


@pytest.mark.parametrize(
    ("settings", "redaction", "injection"),
    [
        ({}, "off", "on"),
        ({"redact": "all", "detect_injection": True}, "all", "on"),
        ({"redact": "facts", "detect_injection": False}, "facts", "off"),
    ],
)
def test_doctor_says_whether_redaction_and_injection_detection_are_on(
    open_memory: OpenMemory, settings: dict[str, object], redaction: str, injection: str
) -> None:
    checks = {check.name: check for check in open_memory("memory://", embeddings="none", **settings).admin.doctor()}
    assert checks["redaction"].detail.partition(":")[0] == redaction
    assert checks["injection detection"].detail.partition(":")[0] == injection
    assert checks["redaction"].ok
    assert checks["injection detection"].ok


def test_what_is_refused_is_reported_redacted(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory("memory://", embeddings="none", extractor="none", redact="all")
    file = tmp_path / f"chat of {S['mail']}.jsonl"
    file.write_text(f'{{"text": "Hi", "occurred_at": "password: {S["password"]}"}}\n')
    bad = {"text": "Hi", "speaker": S["mail of the speaker"], "metadata": {"x": S["phone"]}}
    reports = (
        memory.ingest(file, skip_invalid=True),
        memory.ingest([bad], skip_invalid=True),
        memory.add_facts([(S["mail"], "knows", "Tom")], skip_invalid=True),
    )
    assert [report.rejected_count for report in reports] == [1, 1, 1]
    assert told(str(reports).encode()) == []
    with pytest.raises(InvalidInput) as error:
        memory.ingest(file)
    assert told(str(error.value).encode()) == []
