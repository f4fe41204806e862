"""The networks that a training starts from: published weights, random ones, or a trained model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from vsgraph.encoders.sources.architectures import (
    SIZES,
    Architecture,
    lite_architecture,
    resnet50_architecture,
)
from vsgraph.encoders.sources.checkpoints import Checkpoint
from vsgraph.encoders.sources.hub import (
    find_folder,
    timm_architecture,
    timm_network,
    vision_architecture,
    vision_network,
)
from vsgraph.encoders.sources.lite import lite_network
from vsgraph.encoders.sources.networks import Classifier, build_body, n_features
from vsgraph.encoders.sources.towers import tower
from vsgraph.errors import InputError, is_meant
from vsgraph.training.recipe import Recipe, Start

MOMENTUM = 0.1  # of running means of norms: they adapt in tens of steps; published ones in hundreds


def start_networks(
    start: Start, class_names: Sequence[str], recipe: Recipe
) -> tuple[list[Any], Architecture]:
    """Return the networks to train, two for Co-teaching, and their architecture.

    The two differ in their random weights: all of them, or those of the classifier.
    """
    if recipe.forget_rate is not None and start.is_trained_model:
        raise InputError(
            "Co-teaching needs two networks that differ, and one trained model gives the same one "
            "twice: start from published or random weights"
        )
    networks = []
    for number in range(1 if recipe.forget_rate is None else 2):
        torch.manual_seed(recipe.random_state + number)
        architecture, network = _classifier(start, class_names)
        networks.append(network)
    for module in torch.nn.ModuleList(networks).modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):  # noqa: SLF001
            module.momentum = MOMENTUM
    return networks, architecture


def start_body(start: Start) -> tuple[Architecture, Any]:
    """Return the architecture and weights of a network before its classifier."""
    folder = Path(start.network)
    if start.is_trained_model:
        checkpoint = Checkpoint.load(folder)
        return checkpoint.architecture, checkpoint.build(folder).body
    if folder.suffix == ".onnx":
        raise InputError(
            f"{folder} is an ONNX file, which cannot be joined with a head; give the network that "
            "it was made from (--network)"
        )
    return _body(start.network, start.size, pretrained=True)


def _classifier(start: Start, class_names: Sequence[str]) -> tuple[Architecture, Any]:
    """Return a classifier and its architecture."""
    if start.is_trained_model:
        folder = Path(start.network)
        checkpoint = Checkpoint.load(folder)
        checkpoint.refuse_other_classes(class_names, "the crawl")
        side = checkpoint.architecture.height
        if start.size not in {None, side}:
            raise InputError(f"{folder} was trained at {side} pixels; leave size unset")
        return checkpoint.architecture, checkpoint.build(folder)
    architecture, body = _body(start.network, start.size, pretrained=start.pretrained)
    return architecture, Classifier(body, n_features(body, architecture), len(class_names))


def _body(name: str, size: int | None, *, pretrained: bool) -> tuple[Architecture, Any]:
    """Return a network before its classifier."""
    if name in SIZES:
        architecture = lite_architecture(name, size)
        return architecture, lite_network(name) if pretrained else build_body(architecture)
    if name == "resnet50":
        if pretrained:
            raise InputError(
                "resnet50 comes without weights: train it from random ones (--from-scratch), or "
                "give a folder or hub name of one with weights, such as microsoft/resnet-50"
            )
        architecture = resnet50_architecture(size)
        return architecture, build_body(architecture)
    if name.startswith("timm:"):
        short = name.removeprefix("timm:")
        network = timm_network(short, pretrained=pretrained)
        architecture = timm_architecture(short, network, size)
        return architecture, tower(architecture, network)
    meant = is_meant(name, [*SIZES, "resnet50"])
    if meant and "/" not in name and not Path(name).exists():
        raise InputError(f"there is no network {name!r}; did you mean {meant}?")
    folder = find_folder(name, "the network")
    architecture = vision_architecture(folder, size)
    if pretrained:
        return architecture, vision_network(folder, architecture)
    return architecture, build_body(architecture)
