"""Folders, tar shards and the official layouts of public data sets, made small."""

import io
import json
import os
import tarfile

import numpy as np
import pytest

from made_pictures import jpeg, put
from vsgraph.crawls import read_crawl
from vsgraph.errors import InputError


def images(crawl):
    return crawl.table["image"].to_pylist()


def labels(crawl):
    return [crawl.class_names[c] for c in crawl.web_labels]


# web labels as an array


def test_an_array_of_web_labels_is_a_crawl_without_pictures(tmp_path):
    np.save(tmp_path / "one.npy", np.array([2, 0, 2]))
    np.save(tmp_path / "several.npy", np.array([[True, True], [False, False]]))
    put(tmp_path / "names.txt", "crane\nbat\npalm\n")

    crawl = read_crawl(tmp_path / "one.npy", classes=tmp_path / "names.txt")
    several = read_crawl(tmp_path / "several.npy")

    assert labels(crawl) == ["palm", "crane", "palm"]
    assert images(crawl) == ["0", "1", "2"]
    assert not crawl.has_pictures
    assert several.class_names == ("0", "1")
    assert several.web_labels.toarray().tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), "must hold web labels, .* got float64"),
        (np.zeros((0,), int), "must hold web labels"),
        (np.array([0, 3]), r"web_labels must lie in 0\.\.1"),
        (np.array([[0, 2]]), "only True and False"),
    ],
)
def test_an_array_that_holds_no_web_labels_is_refused(tmp_path, array, message):
    np.save(tmp_path / "labels.npy", array)
    with pytest.raises(InputError, match=message):
        read_crawl(tmp_path / "labels.npy", classes=["crane", "bat"])


# a folder of class folders


def test_a_folder_of_class_folders_is_read_with_its_side_files(tmp_path):
    put(tmp_path / "crane" / "a.jpg")
    put(tmp_path / "crane" / "a.json", '{"title": "a <i>bird</i>", "tags": ["marsh", "wings"], '
        '"url": "http://x"}')  # fmt: skip
    put(tmp_path / "crane" / "deep" / "b.PNG")
    put(tmp_path / "bat" / "c.jpg")
    put(tmp_path / "bat" / "c.txt", "a cave")
    put(tmp_path / "bat" / "notes.md", "no picture")

    crawl = read_crawl(tmp_path)

    assert crawl.format == "a folder of class folders"
    assert images(crawl) == ["bat/c.jpg", "crane/a.jpg", "crane/deep/b.PNG"]
    assert labels(crawl) == ["bat", "crane", "crane"]
    assert crawl.texts() == ["a cave", "a bird marsh wings", ""]
    assert crawl.read_image(1) == jpeg()
    assert crawl.table["others"].to_pylist() == [{"url": None}, {"url": "http://x"}, {"url": None}]
    assert len(crawl.problems) == 0


def test_what_does_not_belong_into_a_folder_is_counted(tmp_path):
    outside = put(tmp_path / "secret.jpg")
    root = tmp_path / "crawl"
    put(root / "bat" / "a.jpg")
    put(root / "bat" / "a.json", '["no object"]')
    put(root / "bat" / "b.jpg")
    put(root / "bat" / "b.txt", b"caf\xe9")
    put(root / "lost.jpg")
    (root / "bat" / "out.jpg").symlink_to(outside)
    (root / "bat" / "in.jpg").symlink_to(root / "bat" / "a.jpg")
    (root / "loop").symlink_to(root)
    (root / "bat" / "dead.jpg").symlink_to(root / "nothing.jpg")
    (root / "bat" / os.fsdecode(b"\xff.jpg")).write_bytes(b"")

    crawl = read_crawl(root)

    assert images(crawl) == ["bat/a.jpg", "bat/b.jpg", "bat/in.jpg"]
    assert crawl.texts() == ["", "café", ""]
    assert crawl.problems.counts == {
        "image outside any class folder": 1,
        "link that leads out of the folder": 1,
        "link to a folder, or to nothing": 2,
        "file name not in UTF-8": 1,
        "side file that is not a JSON object": 1,
        "text not in UTF-8": 1,
    }


# tar shards


def write_tar(path, files):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_tar_shards_are_read_without_unpacking(tmp_path):
    for shard, color in enumerate(("red", "blue")):
        write_tar(tmp_path / f"s-{shard}.tar", {
            "a.jpg": jpeg(color), "a.json": b'{"title": "a bird"}', "a.cls": b"1",
            "d/b.png": b"x", "d/b.txt": b"a caption", "d/b.cls": b"0",
        })  # fmt: skip
    names = put(tmp_path / "classes.txt", "bat\ncrane\n")

    crawl = read_crawl(tmp_path, classes=names)

    assert images(crawl) == [f"s-{s}.tar/{name}" for s in (0, 1) for name in ("a.jpg", "d/b.png")]
    assert len(crawl.problems) == 0
    assert labels(crawl) == ["crane", "bat"] * 2
    assert crawl.texts() == ["a bird", "a caption"] * 2
    assert list(crawl.read_images()) == [jpeg("red"), b"x", jpeg("blue"), b"x"]
    assert crawl.image_path(0) is None
    assert sorted(p.name for p in tmp_path.iterdir()) == ["classes.txt", "s-0.tar", "s-1.tar"]


def test_what_img2dataset_writes_is_read_as_tar_or_as_folders(tmp_path):
    sample = {"caption": "a bird", "query": "crane", "status": "success", "key": "000000000"}
    files = {"000000000.jpg": jpeg(), "000000000.txt": b"a bird",
             "000000000.json": json.dumps(sample).encode()}  # fmt: skip
    write_tar(tmp_path / "tar" / "00000.tar", files)
    for name, content in files.items():
        put(tmp_path / "files" / "00000" / name, content)
    for folder in ("tar", "files"):
        put(tmp_path / folder / "00000.parquet", b"")
        put(tmp_path / folder / "00000_stats.json", b"{}")

    for folder in ("tar", "files"):
        crawl = read_crawl(tmp_path / folder)
        assert labels(crawl) == ["crane"]
        assert crawl.texts() == ["a bird"]
        assert crawl.read_image(0) == jpeg()
        passed_on = {"status": "success", "key": "000000000"}
        assert crawl.table["others"].to_pylist() == [passed_on]


def test_hostile_members_of_a_shard_are_left_out_and_counted(tmp_path):
    path = write_tar(tmp_path / "s.tar", {
        "../up.jpg": b"x", "/abs.jpg": b"x", "a.jpg": jpeg(), "a.cls": b"bat",
        "b.cls": b"bat", "c.jpg": b"x", "e.jpg": b"x", "e.cls": b"bat", "e.json": b"{",
    })  # fmt: skip
    with tarfile.open(path, "a") as tar:
        link = tarfile.TarInfo("f.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)

    crawl = read_crawl(path)

    assert images(crawl) == ["s.tar/a.jpg", "s.tar/e.jpg"]
    assert crawl.problems.counts == {
        "shard member with an unsafe path": 2,
        "shard member that is not a file": 1,
        "sample without an image": 1,
        "no label": 1,
        "side file that is not a JSON object": 1,
    }


def test_a_truncated_shard_gives_what_it_holds(tmp_path):
    path = write_tar(tmp_path / "s.tar", {"a.jpg": jpeg(), "a.cls": b"bat", "b.cls": b"bat",
                                          "b.jpg": b"x" * 50_000})  # fmt: skip
    whole = path.read_bytes()
    path.write_bytes(whole[:20_000])
    write_tar(tmp_path / "t.tar", {"c.jpg": jpeg(), "c.cls": b"owl"})
    put(tmp_path / "u.tar", b"no tar")

    crawl = read_crawl(tmp_path)

    assert images(crawl) == ["s.tar/a.jpg", "t.tar/c.jpg"]
    assert crawl.problems.counts["shard that ends too early"] == 1
    assert crawl.problems.counts["broken shard"] == 1


def test_keys_of_a_samples_json_can_be_told_and_labels_split(tmp_path):
    sample = {"what": "sea,sky", "words": "blue", "site": "flickr", "shown": ["sea"]}
    path = write_tar(tmp_path / "s.tar", {"a.jpg": b"x", "a.json": json.dumps(sample).encode()})

    told = {"label": "what", "text": "words", "source": "site", "truth": "shown"}
    crawl = read_crawl(path, columns=told, label_separator=",")

    assert crawl.web_labels.toarray().tolist() == [[True, True]]
    assert crawl.truth.toarray().tolist() == [[True, False]]
    assert (crawl.texts(), crawl.sources.tolist()) == (["blue"], ["flickr"])


def test_a_list_of_labels_in_a_samples_json_is_read(tmp_path):
    sample = json.dumps({"label": ["sea", "sky"]}).encode()
    path = write_tar(tmp_path / "s.tar", {"a.jpg": b"x", "a.json": sample})

    assert read_crawl(path, label_separator=",").web_labels.toarray().tolist() == [[True, True]]
    assert read_crawl(path).class_names == ("sea sky",)


def test_a_sample_that_says_nothing_of_its_truth_is_unknown(tmp_path):
    shown = {"a": ["sea"], "b": [], "c": None, "d": "", "e": "see"}
    files = {}
    for key, names in shown.items():
        sample = json.dumps({"label": "sea", "shown": names}).encode()
        files |= {f"{key}.jpg": b"x", f"{key}.json": sample}
    crawl = read_crawl(write_tar(tmp_path / "s.tar", files), columns={"truth": "shown"})

    assert crawl.truth.toarray().ravel().tolist() == [True, False, False, False, False]
    assert crawl.truth_known.tolist() == [True, True, False, False, True]
    assert crawl.other_truths == {"see": 1}


def test_compressed_shards_are_refused_with_advice(tmp_path):
    put(tmp_path / "s.tar.gz", b"\x1f\x8b")

    with pytest.raises(InputError, match=r"s\.tar\.gz is compressed.*gunzip"):
        read_crawl(tmp_path)
    with pytest.raises(InputError, match=r"holds no \.tar shards"):
        read_crawl(put(tmp_path / "empty" / "x").parent, format="shards")


# WebVision


def webvision(root, *, meta="google/q0001.json", folder=""):
    """Write a tree of the official layout with its quirks."""
    put(root / "info" / "synsets.txt", "n01440764 tench, Tinca tinca\nn02012849 crane\n")
    put(root / "info" / "train_filelist_google.txt",
        "google/q0001/a.jpg 1\ngoogle/q0001/b.jpg 1\ngoogle/q0002/c.jpg 0\n")  # fmt: skip
    put(root / "info" / "train_meta_list_google.txt",
        "google/q0001.json 2\ngoogle/q0001.json 1\ngoogle/q0002.json 1\n")  # fmt: skip
    put(root / "info" / "train_filelist_flickr.txt", "flickr/q0001/d.jpg 1\nbroken\n")
    put(root / "info" / "train_meta_list_flickr.txt", "flickr/q0001.json 1\nflickr/q0001.json 2\n")
    put(root / "info" / "val_filelist.txt", "val000001.jpg 1\nval000002.jpg 0\n")
    put(root / meta, json.dumps([
        {"id": "b", "rank": 1, "description": "second <b>row</b>"},
        {"id": "a", "rank": 2, "title": "first", "description": "a wading bird", "tags": ["no"]},
    ]))  # fmt: skip
    put(root / meta.replace("google", "flickr"), json.dumps([
        {"id": "d", "title": "Grus", "tags": ["bird", "marsh"], "description": "not read"}
    ]))  # fmt: skip
    for name in ("google/q0001/a.jpg", "google/q0001/b.jpg", "flickr/q0001/d.jpg"):
        put(root / folder / name)
    put(root / "val_images_256" / "val000001.jpg")
    return root


@pytest.mark.parametrize("meta", ["google/q0001.json", "meta/google/q0001.json",
                                  "metadata/google/q0001.json",
                                  "google_json/q0001.json"])  # fmt: skip
@pytest.mark.parametrize("folder", ["", "train_images_256"])
def test_webvision_is_read_with_the_papers_choice_of_text(tmp_path, meta, folder):
    crawl = read_crawl(webvision(tmp_path, meta=meta, folder=folder))
    prefix = f"{folder}/" if folder else ""

    assert crawl.format == "WebVision (train)"
    assert crawl.class_names == crawl.wnids == ("n01440764", "n02012849")
    assert images(crawl) == [
        prefix + name
        for name in (
            "google/q0001/a.jpg",
            "google/q0001/b.jpg",
            "google/q0002/c.jpg",
            "flickr/q0001/d.jpg",
        )
    ]
    assert crawl.web_labels.tolist() == [1, 1, 0, 1]
    assert crawl.texts() == ["first a wading bird", "second row", "", "Grus bird marsh"]
    assert crawl.sources.tolist() == ["google"] * 3 + ["flickr"]
    assert crawl.problems.counts == {
        "metadata missing": 1,
        "image without its metadata": 1,
        "broken line": 1,
    }


def test_a_list_of_wnids_makes_google_500_of_webvision(tmp_path):
    root = webvision(tmp_path)
    listed = put(tmp_path / "google-500.txt", "n02012849\n")

    crawl = read_crawl(root, classes=listed, sources=("google",))

    assert crawl.class_names == ("n02012849",)
    assert images(crawl) == ["google/q0001/a.jpg", "google/q0001/b.jpg"]
    with pytest.raises(InputError, match=r"n09999999 is not a class in"):
        read_crawl(root, classes=put(tmp_path / "x.txt", "n09999999\n"))


def test_webvision_2_has_one_list_for_all(tmp_path):
    root = webvision(tmp_path)
    info = root / "info"
    (info / "train_filelist_google.txt").rename(info / "train_filelist_all.txt")
    (info / "train_meta_list_google.txt").rename(info / "train_meta_list_all.txt")
    (info / "train_filelist_flickr.txt").unlink()

    crawl = read_crawl(root)

    assert len(crawl) == 3
    assert crawl.texts()[0] == "first a wading bird"


def test_an_entry_is_found_by_its_id_where_the_row_number_is_wrong(tmp_path):
    root = webvision(tmp_path)
    put(root / "info" / "train_meta_list_google.txt",
        "google/q0001.json 1\ngoogle/q0001.json 99\ngoogle/q0002.json 1\n")  # fmt: skip

    assert read_crawl(root).texts()[:2] == ["first a wading bird", "second row"]


def test_lists_of_unequal_length_or_missing_are_refused_or_told(tmp_path):
    root = webvision(tmp_path)
    put(root / "info" / "train_meta_list_google.txt", "google/q0001.json 1\n")
    with pytest.raises(InputError, match=r"train_meta_list_google.txt has 1 lines, the list of"):
        read_crawl(root)
    (root / "info" / "train_meta_list_google.txt").unlink()
    assert "list of metadata missing" in read_crawl(root).problems.counts
    (root / "info" / "train_filelist_google.txt").unlink()
    (root / "info" / "train_filelist_flickr.txt").unlink()
    with pytest.raises(InputError, match=r"holds no train_filelist of google, flickr"):
        read_crawl(root)


def test_validation_images_carry_the_truth(tmp_path):
    crawl = read_crawl(webvision(tmp_path), split="val")

    assert images(crawl) == ["val_images_256/val000001.jpg", "val_images_256/val000002.jpg"]
    assert crawl.truth.toarray().tolist() == [[False, True], [True, False]]


@pytest.mark.parametrize("names", [("n02012849", "n01440764"), ("1", "0")])
def test_imagenets_validation_set_is_read_by_wnid_or_number(tmp_path, names):
    for name in (*names, "n09999999"):
        put(tmp_path / "val" / name / "x.JPEG")
    listed = put(tmp_path / "synsets.txt", "n01440764 tench\nn02012849 crane\n")

    crawl = read_crawl(tmp_path / "val", format="imagenet-val", classes=listed)

    assert dict(zip(images(crawl), labels(crawl), strict=True)) == {
        f"{names[0]}/x.JPEG": "n02012849",
        f"{names[1]}/x.JPEG": "n01440764",
    }
    assert np.asarray(crawl.truth.sum(axis=1)).ravel().tolist() == [1, 1]


# NUS-WIDE


def nus_wide(root):
    """Write a tree of the official layout with three concepts."""
    put(root / "ConceptsList" / "Concepts81.txt", "bear\nsea\nsky\n")
    put(root / "ImageList" / "TrainImagelist.txt",
        "actor\\0001_11.jpg\nactor\\0002_22.jpg\nbeach\\0003_33.jpg\n")  # fmt: skip
    put(root / "ImageList" / "TestImagelist.txt", "beach\\0004_44.jpg\nbeach\\0005_55.jpg\n")
    tags = root / "NUS_WID_Tags"
    put(tags / "Train_Tags81.txt", "1 0 0 \n0 0 0 \n0 1 1 \n")
    put(tags / "Test_Tags81.txt", "0  0 1 \n0 1 0 \n")
    put(tags / "All_Tags.txt", "11      bear zoo\n22      \n33      blue waves\n44      sun\n")
    for concept, (train, test) in {"bear": ("100", "00"), "sea": ("001", "00"),
                                   "sky": ("000", "10")}.items():  # fmt: skip
        folder = root / "Groundtruth" / "TrainTestLabels"
        put(folder / f"Labels_{concept}_Train.txt", "\n".join(train) + "\n")
        put(folder / f"Labels_{concept}_Test.txt", "\n".join(test) + "\n")
    put(root / "Flickr" / "actor" / "0001_11.jpg")
    return root


def test_nus_wide_is_read_with_tags_as_labels_and_text(tmp_path):
    crawl = read_crawl(nus_wide(tmp_path))

    assert crawl.format == "NUS-WIDE (train)"
    assert images(crawl) == ["Flickr/actor/0001_11.jpg", "Flickr/beach/0003_33.jpg"]
    assert crawl.web_labels.toarray().tolist() == [[True, False, False], [False, True, True]]
    assert crawl.truth.toarray().tolist() == [[True, False, False], [False, True, False]]
    assert crawl.texts() == ["bear zoo", "blue waves"]


def test_the_test_photos_of_nus_wide_are_those_with_a_true_label(tmp_path):
    crawl = read_crawl(nus_wide(tmp_path), split="test")

    assert images(crawl) == ["Flickr/beach/0004_44.jpg"]
    assert crawl.truth.toarray().tolist() == [[False, False, True]]
    with pytest.raises(InputError, match=r"split must be one of train, test, all, got 'dev'"):
        read_crawl(tmp_path, split="dev")


def test_nus_wide_files_that_do_not_fit_are_refused_with_their_line(tmp_path):
    root = nus_wide(tmp_path)
    put(root / "NUS_WID_Tags" / "Train_Tags81.txt", "1 0 0\n0 0\n0 1 1\n")
    with pytest.raises(InputError, match=r"Train_Tags81\.txt, line 2: expected 3 lines of"):
        read_crawl(root)
    put(root / "NUS_WID_Tags" / "Train_Tags81.txt", "1 0 0\n")
    with pytest.raises(InputError, match=r"has 1 lines, the list of images 3"):
        read_crawl(root)
    put(root / "ImageList" / "TrainImagelist.txt", "..\\..\\etc\\passwd\n")
    with pytest.raises(InputError, match=r"\.\./\.\./etc/passwd leads out of the folder"):
        read_crawl(root)
    (root / "ImageList" / "TrainImagelist.txt").unlink()
    with pytest.raises(InputError, match=r"TrainImagelist\.txt does not exist"):
        read_crawl(root)


# COCO captions


def coco(root):
    """Write official annotation files of four photos."""
    photos = [{"id": i, "file_name": f"{i:012d}.jpg"} for i in (7, 3, 5, 9)]
    captions = {
        3: ["An orange on a plate.", "Fruit."], 5: ["A man in an orange shirt on a board."],
        7: ["Nothing of it."], 9: ["Oranges and a surf board."],
    }  # fmt: skip
    notes = [
        {"id": 10 * i + n, "image_id": i, "caption": text}
        for i, texts in captions.items() for n, text in enumerate(texts)
    ]  # fmt: skip
    marks = [{"image_id": 3, "category_id": 55}, {"image_id": 5, "category_id": 42},
             {"image_id": 9, "category_id": 1}]  # fmt: skip
    names = [{"id": 1, "name": "person"}, {"id": 42, "name": "surfboard"},
             {"id": 55, "name": "orange"}]  # fmt: skip
    folder = root / "annotations"
    put(folder / "captions_val2017.json", json.dumps({"images": photos, "annotations": notes}))
    put(folder / "instances_val2017.json",
        json.dumps({"images": photos, "annotations": marks, "categories": names}))  # fmt: skip
    return root


QUERIES = {"orange": {"query": "oranges?", "wnid": "n07747607"}, "surfboard": "boards?"}


def test_coco_captions_make_a_crawl_with_queries_as_labels(tmp_path):
    queries = put(tmp_path / "queries.json", json.dumps(QUERIES))

    crawl = read_crawl(coco(tmp_path), queries=queries)
    several = read_crawl(tmp_path, queries=queries, several_labels=True)

    assert images(crawl) == [f"val2017/{i:012d}.jpg" for i in (3, 5, 9)]
    assert crawl.class_names == ("orange", "surfboard")
    assert crawl.wnids == ("n07747607", None)
    assert crawl.web_labels[0] == 0
    assert crawl.truth.toarray().tolist() == [[True, False], [False, True], [False, False]]
    assert crawl.truth_known.all()
    assert crawl.other_truths == {}
    assert crawl.texts()[0] == "An orange on a plate. Fruit."
    assert several.web_labels.toarray().tolist() == [[True, False], [True, True], [True, True]]


def test_coco_without_queries_uses_the_names_of_its_classes(tmp_path):
    assert set(labels(read_crawl(coco(tmp_path)))) == {"orange"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("captions_val2017.json", "{", r"captions_val2017\.json is not JSON"),
        ("captions_val2017.json", "[]", r"is not a COCO file: it has no annotations"),
        ("captions_train2017.json", "{}", r"holds captions_.*; give the path of one"),
    ],
)
def test_broken_coco_files_are_refused(tmp_path, name, content, message):
    put(coco(tmp_path) / "annotations" / name, content)
    with pytest.raises(InputError, match=message):
        read_crawl(tmp_path)


def test_broken_queries_are_refused(tmp_path):
    coco(tmp_path)
    with pytest.raises(InputError, match=r"the query of 'x' is not a regular expression"):
        read_crawl(tmp_path, queries=put(tmp_path / "q.json", '{"x": "("}'))
    with pytest.raises(InputError, match=r"cannot be read as JSON"):
        read_crawl(tmp_path, queries=put(tmp_path / "q.json", "{"))
    (tmp_path / "annotations" / "instances_val2017.json").unlink()
    with pytest.raises(InputError, match=r"instances_val2017\.json does not exist, so give the"):
        read_crawl(tmp_path)
    assert read_crawl(tmp_path, queries=put(tmp_path / "q.json", '{"x": "orange"}')).truth is None
