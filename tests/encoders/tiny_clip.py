"""A tiny CLIP, made and trained on the spot: it knows the drawings of the demo, or nothing."""

import json
import re

import numpy as np
import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from vsgraph.demo import drawings
from vsgraph.demo.made_up import DESCRIPTIONS, QUERIES

SIDE = 32
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
LAYERS = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 2, "projection_dim": 24}  # fmt: skip


def save_tiny_clip(folder, *, steps):
    """Write a CLIP of transformers that saw `steps` batches of drawings with their captions."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    tokenizer = _save_tokenizer(folder)
    text = {**LAYERS, "vocab_size": tokenizer.get_vocab_size(), "max_position_embeddings": 40,
            "eos_token_id": 3, "bos_token_id": 2, "pad_token_id": 0}  # fmt: skip
    vision = {**LAYERS, "image_size": SIDE, "patch_size": 8}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=24)
    network = transformers.CLIPModel(config)
    if steps:
        _train(network, tokenizer, steps)
    network.eval().save_pretrained(folder)
    settings = {"do_resize": True, "size": {"shortest_edge": SIDE}, "do_center_crop": True,
                "crop_size": SIDE, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}  # fmt: skip
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    return folder


def _senses():
    """Yield every thing that the demo draws, and the words for it."""
    for name, (_, senses) in QUERIES.items():
        for _, artist, near, shown in senses:
            if shown in {None, name}:
                yield artist, f"{DESCRIPTIONS[shown]} {near}" if shown else near


def _save_tokenizer(folder):
    words = {word for _, said in _senses() for word in re.findall(r"[a-z]+", said)}
    words |= {"a", "photo", "of"}
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *sorted(words)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"pad_token": "[PAD]"}')
    tokenizer.enable_padding()
    return tokenizer


def _train(network, tokenizer, steps):
    random = np.random.default_rng(7)
    senses = list(_senses())
    shown = np.stack([
        np.stack([_small(drawings.draw_picture(artist, random)) for _ in range(64)])
        for artist, _ in senses
    ])  # fmt: skip
    pixels = torch.from_numpy(shown.transpose(0, 1, 4, 2, 3)).float() / 127.5 - 1
    optimizer = torch.optim.AdamW(network.parameters(), 2e-3)
    for _ in range(steps):
        seen = pixels[:, random.integers(64)]
        said = tokenizer.encode_batch([_caption(words, random) for _, words in senses])
        ids = torch.tensor([line.ids for line in said])
        mask = torch.tensor([line.attention_mask for line in said])
        loss = network(ids, seen, mask, return_loss=True).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def _small(picture):
    return np.asarray(Image.fromarray(picture).resize((SIDE, SIDE), Image.Resampling.BOX))


def _caption(words, random):
    """Return some of the words for a thing, in their order."""
    found = re.findall(r"[a-z]+", words)
    kept = random.random(len(found)) < 0.5
    return "a photo of a " + " ".join(w for w, is_kept in zip(found, kept, strict=True) if is_kept)
