"""Small made-up trees of the official layouts, and tiny networks, to run an experiment in seconds.

The pictures are the drawings of :mod:`vsgraph.demo.drawings`: words with two meanings.
"""

import dataclasses
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from study import Study
from vsgraph.demo import drawings
from vsgraph.demo.drawings import Artist
from vsgraph.demo.made_up import FILLER
from vsgraph.encoders.runtimes.conversion import quietly
from vsgraph.meanings.words import clean_text
from vsgraph.training import Start

SIDE = 32
PER_CLASS = {"google": 16, "flickr": 6}
PER_TEST = 6  # images a class
MEANT = 0.6  # share of images of the sense that is meant
Sense = tuple[Artist, str]

STICKS = (drawings.drum_sticks, "drum stick percussion wooden music band")
LEG = (drawings.chicken_leg, "chicken leg roast dinner recipe sauce")
DEVICE = (drawings.computer_mouse, "computer device wheel button cursor usb")
RODENT = (drawings.field_mouse, "rodent animal tail cheese wild fur")
BAT = (drawings.flying_bat, "nocturnal mammal animal flying wings cave")
CLUB = (drawings.baseball_bat, "baseball club hit ball batter")
FRUIT = (drawings.orange_fruit, "fruit citrus juicy peel fresh tree")
WALL = (drawings.orange_wall, "wall paint house color partition")
PALM = (drawings.palm_tree, "palm tree plant tropical beach trunk")
HAND = (drawings.palm_of_hand, "hand fingers palm surface skin wrist")
BIRD = (drawings.crane_bird, "bird wading marsh legs neck")
MACHINE = (drawings.crane_machine, "crane lifts heavy objects tower steel")

# wnid and name: the sense that the class means, then the one that its query finds as well
SYNSETS: dict[str, tuple[Sense, ...]] = {
    "n03250847 drumstick": (STICKS, LEG),
    "n03793489 mouse, computer mouse": (DEVICE, RODENT),
    "n02139199 bat": (BAT, CLUB),
    "n02799175 baseball bat": (CLUB,),
    "n07747607 orange": (FRUIT, WALL),
    "n12582231 palm, palm tree": (PALM, HAND),
    "n02012849 crane": (BIRD, MACHINE),
    "n03126707 crane": (MACHINE, BIRD),
    "n02330245 mouse": (RODENT, DEVICE),
    "n07647870 drumstick": (LEG, STICKS),
    "n04546855 wall": (WALL,),
    "n05565696 palm": (HAND, PALM),
}
PHOTOS: dict[Sense, tuple[str, ...]] = {
    BIRD: ("animal", "birds"), BAT: ("animal",), RODENT: ("animal",), FRUIT: ("food",),
    LEG: ("food",), WALL: ("house",), CLUB: ("sports",), PALM: ("tree",),
}  # fmt: skip
CONCEPTS = sorted({name for names in PHOTOS.values() for name in names})
N_PHOTOS = {"Train": 120, "Test": 40}


def small_study(study: Study, folder: Path) -> tuple[Study, dict[str, Any]]:
    """Return a data set of the paper made small, and the choices that go with it.

    Parameters
    ----------
    study : Study
        What to make small.
    folder : Path
        Where the tree and the networks go; what is there is used.

    Returns
    -------
    study : Study
        With a tiny network, few steps, and the counts of the tree.
    choices : dict
        `root`, `text_encoder` and `runtime`.
    """
    several = study.train["format"] == "nus-wide"
    root = folder / ("nus-wide" if several else "webvision")
    network, text = folder / "network", folder / "xlnet"
    _write_once(root, write_nus_wide if several else write_webvision)
    with quietly():
        _write_once(network, write_network)
        _write_once(text, write_xlnet)
    n_train = n_test = len(SYNSETS) // (2 if study.half else 1)
    counts = {"classes": len(CONCEPTS), "photos listed for training": N_PHOTOS["Train"],
              "photos listed for testing": N_PHOTOS["Test"]}  # fmt: skip
    if not several:
        n_each = sum(PER_CLASS[s] for s in study.train.get("sources", PER_CLASS))
        counts = {"classes": n_train, "training images": n_train * n_each,
                  "WebVision test images": n_test * PER_TEST,
                  "ImageNet test images": n_test * PER_TEST}  # fmt: skip
    recipe = dataclasses.replace(
        study.recipe, epochs=3, batch_size=16, learning_rate=0.1, warmup_epochs=1, forget_epochs=2
    )
    small = dataclasses.replace(
        study,
        counts={name: (many, many) for name, many in counts.items()},
        start=Start(str(network), pretrained=study.start.pretrained),
        recipe=recipe,
        settings=dataclasses.replace(
            study.settings, n_neighbors=4, anchors_per_class=4, epochs=200, learning_rate=0.1
        ),
        n_gpus=1,
    )
    return small, {"root": root, "text_encoder": str(text), "runtime": "torch"}


def _write_once(folder: Path, write: Callable[[Path], None]) -> None:
    """Write a folder unless it is there; one that a kill left half-written is written anew."""
    if not folder.exists():
        part = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        write(part)
        part.rename(folder)


def write_webvision(root: Path) -> None:
    """Write WebVision's layout, and ImageNet's validation images in it."""
    random = np.random.default_rng(0)
    info = root / "info"
    info.mkdir()
    (info / "synsets.txt").write_text("".join(f"{line}\n" for line in SYNSETS))
    for source, per_class in PER_CLASS.items():
        _write_source(root, source, per_class, random)
    lines = []
    for label, (name, senses) in enumerate(SYNSETS.items()):
        for i in range(PER_TEST):
            file = f"val{len(lines) + 1:06}.jpg"
            _draw(root / "val_images_256" / file, senses[0], random)
            _draw(root / "imagenet" / "val" / name.split()[0] / f"{i}.JPEG", senses[0], random)
            lines.append(f"{file} {label}\n")
    (info / "val_filelist.txt").write_text("".join(lines))


def _write_source(root: Path, source: str, n: int, random: np.random.Generator) -> None:
    """Write the images that queries find on Google or Flickr, with their texts."""
    files, metas = [], []
    for label, senses in enumerate(SYNSETS.values()):
        query, entries = f"{source}/q{label + 1:04}", []
        for i in range(n):
            sense = senses[0] if random.uniform() < MEANT else senses[-1]
            _draw(root / query / f"{label}x{i}.jpg", sense, random)
            words = _words(sense, random)
            rest = {"description": " ".join(words)} if source == "google" else {"tags": words}
            entries.append({"id": f"{label}x{i}", "rank": i + 1, "title": words[0], **rest})
            files.append(f"{query}/{label}x{i}.jpg {label}\n")
            metas.append(f"{query}.json {i + 1}\n")
        (root / f"{query}.json").write_text(json.dumps(entries))
    (root / "info" / f"train_filelist_{source}.txt").write_text("".join(files))
    (root / "info" / f"train_meta_list_{source}.txt").write_text("".join(metas))


def write_nus_wide(root: Path) -> None:
    """Write NUS-WIDE's layout: tags that are partly wrong, labels by people."""
    random = np.random.default_rng(0)
    _lines(root / "ConceptsList" / "Concepts81.txt", CONCEPTS)
    tags, number = [], 0
    for split, n in N_PHOTOS.items():
        names, web, truth = [], [], []
        for _ in range(n):
            sense = list(PHOTOS)[random.integers(len(PHOTOS))]
            shown = np.isin(CONCEPTS, PHOTOS[sense])
            web.append(np.where(shown, random.uniform(size=len(shown)) < 0.8,
                                random.uniform(size=len(shown)) < 0.1))  # fmt: skip
            number += 1
            names.append(f"made\\{number:04}_{number}.jpg")
            _draw(root / "Flickr" / "made" / f"{number:04}_{number}.jpg", sense, random)
            tags.append(f"{number}      {' '.join(_words(sense, random))}")
            truth.append(shown)
        _lines(root / "ImageList" / f"{split}Imagelist.txt", names)
        numbers = [" ".join(map(str, row.astype(int))) + " " for row in web]
        _lines(root / "NUS_WID_Tags" / f"{split}_Tags81.txt", numbers)
        for i, concept in enumerate(CONCEPTS):
            path = root / "Groundtruth" / "TrainTestLabels" / f"Labels_{concept}_{split}.txt"
            _lines(path, [str(int(row[i])) for row in truth])
    _lines(root / "NUS_WID_Tags" / "All_Tags.txt", tags)


def _words(sense: Sense, random: np.random.Generator) -> list[str]:
    return [*random.choice(sense[1].split(), 3, replace=False), *random.choice(FILLER, 1)]


def _draw(path: Path, sense: Sense, random: np.random.Generator) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(drawings.draw_picture(sense[0], random)).save(path, "JPEG")


def _lines(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def write_network(folder: Path) -> None:
    """Write a tiny residual network with random weights."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"
    )
    transformers.ResNetModel(config).save_pretrained(folder)
    size = {"size": {"height": SIDE, "width": SIDE}}
    (folder / "preprocessor_config.json").write_text(json.dumps(size))


def write_xlnet(folder: Path) -> None:
    """Write a tiny XLNet with random weights that knows the words of the trees."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    said = " ".join(words for senses in SYNSETS.values() for _, words in senses)
    words = ["[PAD]", "[UNK]", *sorted({*said.split(), *clean_text(said).split()})]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]"}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.XLNetConfig(
        vocab_size=len(words), d_model=32, n_layer=1, n_head=2, d_inner=32, pad_token_id=0
    )
    transformers.XLNetModel(config).save_pretrained(folder)
