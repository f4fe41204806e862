"""Pictures and texts to vectors: encoders, the runtimes they run on, the store they fill.

>>> from vsgraph.encoders import image_encoder, text_encoder, embed_images, embed_texts
"""

from vsgraph.encoders.embed import Embedded, embed_crawl
from vsgraph.encoders.images import encode_pictures, image_encoder
from vsgraph.encoders.pipeline import embed_images, embed_texts
from vsgraph.encoders.places import pictures_digest
from vsgraph.encoders.protocol import Encoded, ImageEncoder, TextEncoder
from vsgraph.encoders.sources.lsa import Lsa
from vsgraph.encoders.store import VectorStore
from vsgraph.encoders.text import text_encoder
from vsgraph.encoders.vectors import Embedding
from vsgraph.pictures.decode import Preparation, read_picture
from vsgraph.pictures.opener import PictureError

__all__ = [
    "Embedded",
    "Embedding",
    "Encoded",
    "ImageEncoder",
    "Lsa",
    "PictureError",
    "Preparation",
    "TextEncoder",
    "VectorStore",
    "embed_crawl",
    "embed_images",
    "embed_texts",
    "encode_pictures",
    "image_encoder",
    "pictures_digest",
    "read_picture",
    "text_encoder",
]
