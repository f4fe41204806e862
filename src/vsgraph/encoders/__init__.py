"""Pictures and texts to vectors: encoders, the runtimes they run on, the store they fill.

>>> from vsgraph.encoders import image_encoder, text_encoder, embed_images, embed_texts
"""

from vsgraph.encoders.embed import Embedded, embed_crawl
from vsgraph.encoders.images import OwnEncoder, encode_pictures, image_encoder
from vsgraph.encoders.pipeline import embed_images, embed_texts
from vsgraph.encoders.protocol import Encoded, ImageEncoder, TextEncoder
from vsgraph.encoders.sources.lsa import Lsa
from vsgraph.encoders.store import VectorStore
from vsgraph.encoders.text import text_encoder
from vsgraph.encoders.vectors import Embedding
from vsgraph.pictures.decode import PictureError, Preparation, read_picture

__all__ = [
    "Embedded",
    "Embedding",
    "Encoded",
    "ImageEncoder",
    "Lsa",
    "OwnEncoder",
    "PictureError",
    "Preparation",
    "TextEncoder",
    "VectorStore",
    "embed_crawl",
    "embed_images",
    "embed_texts",
    "encode_pictures",
    "image_encoder",
    "read_picture",
    "text_encoder",
]
