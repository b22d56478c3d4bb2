"""Colour names of option values, reduced to the base colours that WebShop's reward compares."""

from __future__ import annotations

Option = str | tuple[str, str]
"""A wanted option: its value, or (name, value) where a goal keeps its options as an object."""

BASE_COLOURS = tuple(
    """alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy camel
    camo caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral cranberry cream
    crystal dark denim eggplant elephant espresso fuchsia gold granite grape graphite grass gray green grey heather
    indigo ivory ivy khaki lavender lemon leopard light lilac lime magenta maroon mauve merlot midnight mint mocha
    multicolor mushroom mustard natural navy nude olive orange peach pewter pink plum purple rainbow red rose royal
    rust sand sapphire seashell silver skull slate steel stone stonewash sunflower tan taupe teal tiger turquoise
    violet walnut wheat white wine yellow""".split()  # noqa: SIM905
)
"""In the order in which they are tried: the first that occurs wins (a fact of WebShop's scores)."""


def normalize_colour(option: Option) -> Option:
    """The first base colour that stands anywhere in the value, or the value as it is.

    The test is a substring test and case-sensitive, so ``titanium`` is ``tan``. For a (name, value) pair it asks
    whether name or value *is* a base colour, which is what ``in`` means for a pair.
    """
    for colour in BASE_COLOURS:
        if colour in option:
            return colour
    return option
