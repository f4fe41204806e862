"""The paper's data sets: how each is read, what it must hold, and by which numbers it is done."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from vsgraph import Settings
from vsgraph.training import Recipe, Start

NO_REJECTION = {"reject_threshold": 0.0}  # the paper fine-tunes on all images
WEBVISION = {"format": "webvision", "split": "val"}
IMAGENET = {"format": "imagenet-val"}


@dataclasses.dataclass(frozen=True)
class Study:
    """A data set of the paper.

    Attributes
    ----------
    name : str
        As the paper calls it.
    train : mapping
        How :func:`vsgraph.crawls.read_crawl` reads what it is trained on.
    tests : mapping of str to mapping
        The same for what models are judged on, by the name in the paper's tables.
    half : bool
        Whether it is half of the classes, drawn at random.
    lists : mapping of str to str
        Official lists of images whose lines are counted, as patterns below the root.
    counts : mapping of str to pair of int
        What there must be of each kind, from and to.
    start : Start
        The network.
    recipe : Recipe
        Its training.
    settings : Settings
        The correction.
    n_gpus : int
        What the paper trained on.
    """

    name: str
    train: Mapping[str, Any]
    tests: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, tuple[int, int]]
    start: Start
    recipe: Recipe
    settings: Settings
    n_gpus: int = 8
    half: bool = False
    lists: Mapping[str, str] = dataclasses.field(default_factory=dict)


GOOGLE_500 = Study(
    name="Google-500",
    train={"format": "webvision", "split": "train", "sources": ("google",)},
    tests={"WebVision": WEBVISION, "ImageNet": IMAGENET},
    half=True,
    counts={
        "classes": (500, 500),
        "training images": (489_755, 489_755),
        "WebVision test images": (25_000, 25_000),
        "ImageNet test images": (25_000, 25_000),
    },
    start=Start("resnet50", pretrained=False),
    recipe=Recipe.preset("google-500"),
    settings=Settings.google_500(**NO_REJECTION),
)

WEBVISION_1000 = Study(
    name="WebVision-1000",
    train={"format": "webvision", "split": "train"},
    tests={"WebVision": WEBVISION, "ImageNet": IMAGENET},
    counts={
        "classes": (1000, 1000),
        "training images": (2_400_000, 2_499_999),  # the paper prints 2.4M
        "WebVision test images": (50_000, 50_000),
        "ImageNet test images": (50_000, 50_000),
    },
    start=Start("resnet50", pretrained=False),
    recipe=Recipe.preset("webvision-1000"),
    settings=Settings.webvision_1000(**NO_REJECTION),
    n_gpus=32,
)

NUS_81_WEB = Study(
    name="NUS-81-Web",
    train={"format": "nus-wide", "split": "train"},
    tests={"NUS-WIDE": {"format": "nus-wide", "split": "test"}},
    lists={
        "photos listed for training": "I*/TrainImagelist.txt",
        "photos listed for testing": "I*/TestImagelist.txt",
    },
    counts={
        "classes": (81, 81),
        "photos listed for training": (161_789, 161_789),
        "photos listed for testing": (107_859, 107_859),
    },
    start=Start("microsoft/resnet-50"),  # trained on ImageNet
    recipe=Recipe.preset("nus-81-web"),
    settings=Settings.nus_81_web(**NO_REJECTION),
)
