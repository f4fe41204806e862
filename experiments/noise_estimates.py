"""How many labels are wrong, by estimate and in truth: ``python noise_estimates.py RUN``.

RUN is a run of ``vsgraph correct`` on a crawl that says what its images show.
"""

from pathlib import Path

import click
import numpy as np

from vsgraph.common.formatting import percent
from vsgraph.judge.noise import noise_rate, wrong_share
from vsgraph.runs import Run


@click.command()
@click.argument("run", type=click.Path(path_type=Path, exists=True))
def main(run: Path) -> None:
    """Print three shares of wrong labels: by the probe, by the correction, by the truth."""
    found = Run.open(run)
    web = found.crawl.web_labels
    truth, known = found.read_truth()
    right = np.asarray(truth[np.arange(len(web)), web]).ravel().astype(bool)
    print(f"linear probe, out of fold  {percent(noise_rate(found.arrays()['cnn_probs'], web))}")
    print(f"correction                 {percent(wrong_share(found.correction))}")
    print(f"truth                      {percent(1 - right[known].mean())}")


if __name__ == "__main__":
    main()
