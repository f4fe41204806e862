"""What the texts of a crawl say word by word: unwanted senses, and mentions of the classes."""

from collections.abc import Callable, Iterator, Sequence

from scipy.sparse import csc_array, csr_array

from vsgraph.common.checks import Floats
from vsgraph.crawls.crawl import Crawl
from vsgraph.meanings.attributive import (
    attributive_name,
    is_attributive,
    own_kinds,
    stands_only_before,
)
from vsgraph.meanings.crawl_senses import texts_by_class
from vsgraph.meanings.mentions import Lexicon, find_mentions
from vsgraph.meanings.senses import Meaning
from vsgraph.meanings.unwanted import find_unwanted, unwanted_words
from vsgraph.meanings.wordnet import WordNet

MOST_TEXTS = 2000  # of a class, in which unwanted senses are looked for
BLOCK = 4096  # texts read at once


def propose_unwanted(
    crawl: Crawl, meanings: Sequence[Meaning], encode: Callable[[list[str]], Floats]
) -> list[Meaning]:
    """Return senses that are not meant, found in the texts of each class.

    `meanings` has the chosen one of each class, in the order of the classes; `encode` gives vectors
    of texts.
    """
    texts = texts_by_class(crawl, MOST_TEXTS)
    return find_unwanted(meanings, texts, Lexicon(WordNet.open()), encode)


def mentions_in(
    crawl: Crawl, meanings: Sequence[Meaning], unwanted: Sequence[Meaning]
) -> tuple[csr_array, csr_array]:
    """Return which texts have the name of each class, and which have any word for it.

    Both are bool matrices with one row per image; the columns are the classes, then the unwanted
    senses.
    """
    lexicon = Lexicon(WordNet.open())
    other = [unwanted_words(meaning, lexicon) for meaning in unwanted]
    names = [*map(lexicon.names_of, meanings), *other]
    words = [*map(lexicon.words_for, meanings), *other]
    n_columns = len(names)
    both = csc_array(find_mentions(_all_texts(crawl), [*names, *words], lexicon))
    for number, meaning in enumerate(unwanted, len(meanings)):
        if is_attributive(meaning):
            meant = next(own for own in meanings if own.class_name == meaning.class_name)
            for column in (number, n_columns + number):
                _keep_only_before(both, column, crawl, meant, lexicon)
    both.eliminate_zeros()
    return csr_array(both[:, :n_columns]), csr_array(both[:, n_columns:])


def spoken_name(meaning: Meaning) -> str:
    """Return what people call a class, in one line."""
    return ", ".join(Lexicon(WordNet.open()).spoken(meaning))


def _keep_only_before(
    found: csc_array, column: int, crawl: Crawl, meaning: Meaning, lexicon: Lexicon
) -> None:
    """Forget texts that also have the name of the class elsewhere than before a noun."""
    place = slice(*found.indptr[column : column + 2])
    name, own = attributive_name(meaning, lexicon), own_kinds(meaning, lexicon)
    texts = crawl.texts(found.indices[place])
    found.data[place] = [stands_only_before(text, name, own, lexicon) for text in texts]


def _all_texts(crawl: Crawl) -> Iterator[str]:
    """Yield the text of every image."""
    for start in range(0, len(crawl), BLOCK):
        yield from crawl.texts(slice(start, min(start + BLOCK, len(crawl))))
