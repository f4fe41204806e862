"""A meaning as captions of pictures, to compare with the pictures themselves (CLIP, SigLIP)."""

from vsgraph.meanings.senses import Meaning


def prompts_of(meaning: Meaning) -> list[str]:
    """Return captions that a picture of a class may have; their vectors are averaged.

    The name alone may have several senses, so that half of the captions have its explanation too.

    >>> prompts_of(Meaning("bat", None, "baseball bat, lumber: a club. fungo bat: a thin bat"))[:3]
    ['a photo of a baseball bat.', 'a baseball bat.', 'a photo of a baseball bat, a club.']
    >>> prompts_of(Meaning("jack", None, "a tool that lifts cars"))[2:]
    ['a photo of a jack, a tool that lifts cars.', 'a tool that lifts cars.']
    >>> prompts_of(Meaning("blorf", None, "blorf"))
    ['a photo of a blorf.', 'a blorf.']
    """
    names, colon, rest = meaning.description.partition(":")
    name = names.split(",")[0] if colon else meaning.class_name.replace("_", " ")
    explained = (rest if colon else names).partition(".")[0].strip()
    plain = [f"a photo of a {name}.", f"a {name}."]
    if explained in {"", name}:
        return plain
    return [*plain, f"a photo of a {name}, {explained}.", f"{explained}."]
