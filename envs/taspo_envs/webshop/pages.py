"""The pages of the shop as the pieces of text that they show, and the two ways to write them down.

``text`` joins the pieces with ``[SEP]``; ``text_rich`` puts one on a line and marks buttons, as WebShop's text
environment does.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from taspo_envs.webshop.catalogue import Product

BUY_NOW = "Buy Now"
NEXT_PAGE = "Next >"
PREVIOUS_PAGE = "< Prev"
BACK_TO_SEARCH = "Back to Search"
SEARCH = "Search"
_BLANK = " \t\n\f\r"
SUB_PAGES = ("Description", "Features", "Reviews", "Attributes")


class Kind(Enum):
    """What a piece of a page is."""

    TEXT = "text"
    BUTTON = "button"
    LINK = "link"
    OPTION = "option"


@dataclass(frozen=True)
class Piece:
    """One piece of text on a page; ``name`` is the option's name for an option."""

    text: str
    kind: Kind = Kind.TEXT
    name: str = ""


Page = list[Piece]


def _buttons(*texts: str) -> Page:
    return [Piece(text, Kind.BUTTON) for text in texts]


def search_page(instruction: str) -> Page:
    """Where an episode begins."""
    return [Piece("WebShop"), Piece("Instruction: "), Piece(instruction), *_buttons(SEARCH)]


def results_page(instruction: str, page: int, total: int, products: Iterable[tuple[str, str, str]]) -> Page:
    """Up to ten products as (ASIN, title, price tag). There is always a next page, even beyond the last."""
    pieces = [Piece("Instruction:"), Piece(instruction), *_buttons(BACK_TO_SEARCH)]
    pieces.append(Piece(f"Page {page} (Total results: {total})"))
    pieces += _buttons(PREVIOUS_PAGE, NEXT_PAGE) if page > 1 else _buttons(NEXT_PAGE)
    for asin, title, price_tag in products:
        pieces += [Piece(asin, Kind.LINK), Piece(title), Piece(price_tag)]
    return pieces


def _top(instruction: str) -> Page:
    return [Piece("Instruction:"), Piece(instruction), *_buttons(BACK_TO_SEARCH, PREVIOUS_PAGE)]


def item_page(instruction: str, product: Product, show_attributes: bool) -> Page:
    """A product with its options."""
    pieces = _top(instruction)
    for name, values in product.options.items():
        pieces.append(Piece(name))
        pieces += [Piece(value, Kind.OPTION, name) for value in values]
    pieces += [Piece(product.title), Piece(f"Price: {product.price_tag}"), Piece("Rating: N.A.")]
    sub_pages = SUB_PAGES if show_attributes else SUB_PAGES[:-1]
    return pieces + _buttons(*sub_pages, BUY_NOW)


def sub_page(instruction: str, product: Product, name: str) -> Page:
    """Description, features, reviews or attributes of a product."""
    pieces = _top(instruction)
    if name == "Description":
        pieces.append(Piece(product.description))
    elif name == "Features":
        pieces += [Piece(f" {bullet}") for bullet in product.bullets]
    elif name == "Attributes":
        pieces += [Piece(f" {attribute}") for attribute in product.attributes]
        pieces += [Piece(product.category), Piece(product.query), Piece(product.product_category)]
    return pieces


def done_page(asin: str, chosen: Mapping[str, str], reward: float) -> Page:
    """After buying. The blocks that a browser hides are part of the text."""
    options = json.dumps(chosen, sort_keys=True)
    for character in "<>&'":
        options = options.replace(character, f"\\u{ord(character):04x}")
    purchased = {
        "asin": asin,
        "options": options,
        "attrs": None,
        "category": None,
        "query": None,
        "product category": None,
    }
    target = ["asin", "options", "attrs", "price upper", "instuction text", "category", "product category", "query"]
    texts = [
        "Thank you for shopping with us!",
        "Your code: ",
        "None",
        " (Paste it in your MTurk interface.)",
        "Purchased",
    ]
    texts += [str(part) for pair in purchased.items() for part in pair]
    texts += ["Target", *target, "Goal ", "None", "Reward", "Your score (min 0.0, max 1.0)", str(reward)]
    return [Piece(text) for text in [*texts, "Reward Details ", "None"]]


def clickables(page: Page) -> dict[str, Piece]:
    """What can be clicked, by the text that a click names: buttons, then product links, then options."""
    found = {piece.text.lower(): piece for kind in (Kind.BUTTON, Kind.LINK) for piece in page if piece.kind is kind}
    found.update({piece.text: piece for piece in page if piece.kind is Kind.OPTION})
    return found


def _shown(page: Page) -> Iterator[tuple[str, Piece]]:
    """The pieces that are seen, with the text that the reference's HTML parser leaves of blank ones."""
    for piece in page:
        text = piece.text
        if text and not text.strip(_BLANK):
            text = "\n" if "\n" in text else " "
        if text not in ("", "\n"):
            yield text, piece


def as_text(page: Page) -> str:
    """Observation mode ``text``."""
    return " [SEP] ".join(text.strip() for text, _ in _shown(page))


def as_rich_text(page: Page, url: str, visited: Collection[str]) -> str:
    """Observation mode ``text_rich``.

    An option is marked as clicked if its quoted value stands anywhere in the url, a product if it was visited.
    """
    clicked: list[str] = []
    lines: list[str] = []
    for text, piece in _shown(page):
        if piece.kind is Kind.BUTTON:
            lines.append(f"[button] {piece.text} [button_]")
        elif piece.kind is Kind.OPTION:
            is_clicked = f'"{piece.text}"' in url
            if is_clicked:
                clicked.append(f"You have clicked {piece.text}.")
            lines.append(f"  {_marked(piece.text, is_clicked)}")
        elif piece.kind is Kind.LINK:
            lines.append(f"\n{_marked(piece.text, piece.text in visited)}")
        else:
            lines.append(text)
    return "".join(f"{line}\n" for line in [*reversed(clicked), *lines])


def _marked(text: str, is_clicked: bool) -> str:
    return f"[clicked button] {text} [clicked button_]" if is_clicked else f"[button] {text} [button_]"
