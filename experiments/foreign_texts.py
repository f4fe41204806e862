"""Whose text it is: how many foreign texts are thought to be in web-like text, and which.

python experiments/foreign_texts.py ../shared/data/coco-web ../shared/data/coco-web-b
"""

from pathlib import Path

import click

from coco_web_data import read_coco_web
from doubted_labels import words_of
from ranked import auroc
from trials import TEXTS, Trial, draw, load_vectors, spread
from vsgraph.common.formatting import markdown_table
from vsgraph.method.inputs import check_inputs
from vsgraph.method.trust import trust_texts

HEAD = ["crawl, text", "foreign, %", "by pictures, %", "AUROC", "with names, %", "AUROC"]


def judge(trial: Trial, captions: Trial) -> list[float | None]:
    """Return the share of foreign texts, and as it is thought, by pictures and with names."""
    has_text = trial.text.any(axis=1)
    own = (trial.text == captions.text).all(axis=1)[has_text]
    found: list[float | None] = [float(1 - own.mean())]
    for words in (None, words_of(trial)):
        inputs = check_inputs(
            trial.features, trial.text, trial.meaning, trial.data.web_labels, words=words
        )
        trusted = trust_texts(inputs.with_words()).own[has_text]
        found += [float(1 - trusted.mean()), None if own.all() else auroc(trusted, own)]
    return found


@click.command(help=__doc__)
@click.argument("folders", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--seeds", default=3, show_default=True, help="Trials.")
def main(folders: tuple[Path, ...], seeds: int) -> None:
    """Print the table."""
    rows = []
    for folder in folders:
        vectors = load_vectors(read_coco_web(folder))
        for kind in TEXTS:
            parts = [
                judge(draw(vectors, seed=seed, kind=kind), draw(vectors, seed=seed, kind=TEXTS[0]))
                for seed in range(seeds)
            ]
            cells = zip(*parts, strict=True)
            shown = [
                spread(cell, digits=3, scale=1) if number in {2, 4} else spread(cell)
                for number, cell in enumerate(cells)
            ]
            rows.append([f"{folder.name}, {kind}", *shown])
    click.echo(markdown_table(HEAD, rows))


if __name__ == "__main__":
    main()
