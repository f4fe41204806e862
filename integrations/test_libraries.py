"""cleanlab's Datalab, Hugging Face datasets, torch, timm and scikit-learn on a run."""

import numpy as np
import pytest
from scipy.sparse import load_npz


def test_datalab_accepts_graph_and_probabilities(run, tmp_path):
    cleanlab = pytest.importorskip("cleanlab")
    run.export(tmp_path / "arrays", to="cleanlab", scores="gnn")
    labels, probs = (np.load(tmp_path / "arrays" / f"{n}.npy") for n in ("labels", "pred_probs"))
    graph = load_npz(tmp_path / "arrays" / "knn_graph.npz")
    lab = cleanlab.Datalab(data={"label": labels}, label_name="label", verbosity=0)
    k = graph.nnz // graph.shape[0]
    kinds = {"label": {}, "outlier": {"k": k}, "near_duplicate": {}}
    lab.find_issues(pred_probs=probs, knn_graph=graph, issue_types=kinds)
    found = lab.get_issues("label")["is_label_issue"].to_numpy()
    truth, _ = run.read_truth()
    wrong = ~truth.toarray().astype(bool)[np.arange(len(found)), run.correction.web_labels]
    assert found.any()
    assert wrong[found].mean() > wrong.mean()


def test_hugging_face_loads_the_pictures_and_the_card(run, tmp_path):
    datasets = pytest.importorskip("datasets")
    from huggingface_hub import DatasetCard

    run.export(tmp_path / "clean", to="hf", mode="copy", split=0.8)
    data = datasets.load_dataset(str(tmp_path / "clean"), cache_dir=str(tmp_path / "cache"))
    assert set(data) == {"train", "test"}
    assert sum(len(part) for part in data.values()) == (run.correction.final_labels >= 0).sum()
    assert data["train"].features["label"].names == list(run.correction.class_names)
    assert data["train"][0]["image"].size == (224, 224)
    card = DatasetCard.load(tmp_path / "clean" / "README.md")
    assert card.data.to_dict()["configs"][0]["data_files"][0]["split"] == "train"
    assert "estimate" in card.text or "sure" in card.text


def test_torch_learns_from_soft_labels_and_weights(run):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    data = run.as_torch_dataset(side=16)
    loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True, num_workers=2)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, 7))
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    losses = []
    for _ in range(8):
        for pictures, labels, weights in loader:
            each = torch.nn.functional.cross_entropy(network(pictures), labels, reduction="none")
            loss = (weights * each).sum() / weights.sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert np.mean(losses[-5:]) < 0.7 * losses[0]


def test_scikit_learn_learns_from_the_arrays(run):
    linear = pytest.importorskip("sklearn.linear_model")
    left = run.correction.final_labels >= 0
    model = linear.LogisticRegression(max_iter=500)
    features = np.asarray(run.features, np.float32)
    model.fit(features[left], run.correction.final_labels[left], run.correction.confidence[left])
    truth, _ = run.read_truth()
    shows = truth.sum(axis=1) > 0
    right = truth.toarray()[np.arange(len(left)), model.predict(features)]
    assert right[shows].mean() > 0.8


@pytest.fixture
def timm():
    """Import timm; a torchvision built for a GPU needs two operators declared."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        parts = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            parts.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return pytest.importorskip("timm")


def test_a_tiny_model_of_timm_encodes_pictures(timm, tmp_path):
    torch = pytest.importorskip("torch")
    from vsgraph.encoders import image_encoder

    torch.manual_seed(0)
    network = timm.create_model("test_vit.r160_in1k", pretrained=False)
    timm.models.save_for_hf(network, str(tmp_path / "tiny"))
    name = f"timm:local-dir:{tmp_path / 'tiny'}"
    encoder = image_encoder(name, runtime="torch")
    side = encoder.preparation.height
    pixels = np.random.default_rng(0).integers(256, size=(2, side, side, 3), dtype=np.uint8)
    found = encoder.encode(pixels).vectors
    data = timm.data.resolve_model_data_config(network)
    mean, std = (np.array(data[key], np.float32) for key in ("mean", "std"))
    values = torch.from_numpy(((pixels / np.float32(255) - mean) / std).transpose(0, 3, 1, 2))
    with torch.inference_mode():
        expected = network.eval().forward_head(network.forward_features(values), pre_logits=True)
    np.testing.assert_allclose(found, expected, atol=1e-4)
