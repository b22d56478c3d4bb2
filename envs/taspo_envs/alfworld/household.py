"""What the generated households are made of: rooms, receptacles, objects, and where things are kept.

Types, what a receptacle can hold and what can be washed, heated or cooled are ALFWorld's own (facts of the release
json_2.1.3); where things are usually kept follows how often they stand there in its 3,553 training games.
"""

from __future__ import annotations

KINDS = ("kitchen", "livingroom", "bedroom", "bathroom")

OPENABLE = frozenset({"Cabinet", "Drawer", "Fridge", "Microwave", "Safe"})

# (type, fewest, most): present in every room of the kind, then drawn until the room has its size.
ALWAYS: dict[str, tuple[tuple[str, int, int], ...]] = {
    "kitchen": (
        ("Fridge", 1, 1),
        ("Microwave", 1, 1),
        ("SinkBasin", 1, 1),
        ("CounterTop", 1, 2),
        ("Cabinet", 1, 3),
        ("Drawer", 1, 2),
        ("GarbageCan", 1, 1),
    ),
    "livingroom": (
        ("Sofa", 1, 1),
        ("CoffeeTable", 1, 1),
        ("SideTable", 1, 2),
        ("Drawer", 1, 3),
        ("GarbageCan", 1, 1),
        ("ArmChair", 1, 2),
    ),
    "bedroom": (
        ("Bed", 1, 1),
        ("Desk", 1, 1),
        ("Drawer", 2, 3),
        ("Shelf", 1, 2),
        ("SideTable", 1, 1),
        ("GarbageCan", 1, 1),
    ),
    "bathroom": (
        ("SinkBasin", 1, 1),
        ("Toilet", 1, 1),
        ("CounterTop", 1, 1),
        ("Cabinet", 1, 3),
        ("Drawer", 1, 2),
        ("GarbageCan", 1, 1),
        ("ToiletPaperHanger", 1, 1),
    ),
}
SOMETIMES: dict[str, tuple[tuple[str, int, int], ...]] = {
    "kitchen": (
        ("DiningTable", 1, 1),
        ("CoffeeMachine", 1, 1),
        ("Shelf", 1, 2),
        ("SideTable", 1, 1),
        ("StoveBurner", 1, 2),
        ("Toaster", 1, 1),
    ),
    "livingroom": (
        ("DiningTable", 1, 1),
        ("Dresser", 1, 1),
        ("Shelf", 1, 2),
        ("TVStand", 1, 1),
        ("Cabinet", 1, 2),
        ("Ottoman", 1, 1),
    ),
    "bedroom": (
        ("Dresser", 1, 1),
        ("Safe", 1, 1),
        ("ArmChair", 1, 1),
        ("LaundryHamper", 1, 1),
        ("SideTable", 1, 1),
        ("Cabinet", 1, 2),
    ),
    "bathroom": (
        ("Shelf", 1, 2),
        ("HandTowelHolder", 1, 2),
        ("BathtubBasin", 1, 1),
        ("Cart", 1, 1),
        ("SideTable", 1, 1),
        ("Dresser", 1, 1),
    ),
}

# Where an object of that type is kept, by weight.
PLACES: dict[str, dict[str, dict[str, int]]] = {
    "kitchen": {
        "Apple": {"CounterTop": 4, "Fridge": 4, "DiningTable": 3, "GarbageCan": 1, "SinkBasin": 1, "Microwave": 1},
        "Bread": {"CounterTop": 6, "DiningTable": 4, "Fridge": 3},
        "Egg": {"Fridge": 5, "CounterTop": 3, "SinkBasin": 1, "DiningTable": 2, "Microwave": 1},
        "Lettuce": {"CounterTop": 4, "DiningTable": 3, "Fridge": 5, "SinkBasin": 1},
        "Potato": {"CounterTop": 4, "Fridge": 4, "DiningTable": 2, "SinkBasin": 1, "Microwave": 1},
        "Tomato": {"Fridge": 5, "CounterTop": 4, "DiningTable": 3, "GarbageCan": 1},
        "Bowl": {"Cabinet": 4, "CounterTop": 3, "Fridge": 1, "DiningTable": 2, "Shelf": 1},
        "Cup": {"Cabinet": 4, "CounterTop": 3, "Fridge": 1, "DiningTable": 2, "SinkBasin": 1, "Microwave": 1},
        "Mug": {"CounterTop": 4, "CoffeeMachine": 3, "Cabinet": 4, "SinkBasin": 1, "DiningTable": 2, "Shelf": 1},
        "Plate": {"Cabinet": 4, "CounterTop": 3, "DiningTable": 2, "Shelf": 1, "Fridge": 1},
        "Pan": {"StoveBurner": 5, "CounterTop": 3, "Cabinet": 2, "DiningTable": 1},
        "Pot": {"StoveBurner": 5, "CounterTop": 3, "Cabinet": 2, "Fridge": 1},
        "Kettle": {"StoveBurner": 3, "CounterTop": 3, "Cabinet": 3},
        "ButterKnife": {"CounterTop": 5, "DiningTable": 3, "Drawer": 3, "SinkBasin": 1},
        "Fork": {"CounterTop": 3, "DiningTable": 2, "Drawer": 4, "SinkBasin": 1},
        "Knife": {"CounterTop": 4, "DiningTable": 2, "Drawer": 3, "SinkBasin": 1},
        "Spoon": {"CounterTop": 3, "Drawer": 4, "DiningTable": 2, "SinkBasin": 1},
        "Spatula": {"CounterTop": 4, "Drawer": 3, "DiningTable": 2, "SinkBasin": 1},
        "Ladle": {"CounterTop": 4, "Cabinet": 3, "Drawer": 2},
        "DishSponge": {"CounterTop": 3, "Cabinet": 2, "Drawer": 2, "SinkBasin": 2},
        "PepperShaker": {"CounterTop": 3, "Cabinet": 4, "Drawer": 2, "DiningTable": 2, "Shelf": 1},
        "SaltShaker": {"CounterTop": 3, "Cabinet": 4, "Drawer": 2, "DiningTable": 2, "Shelf": 1},
        "SoapBottle": {"CounterTop": 4, "Cabinet": 4, "GarbageCan": 1, "SideTable": 1},
        "WineBottle": {"CounterTop": 3, "Cabinet": 3, "DiningTable": 2, "GarbageCan": 1, "Fridge": 1},
    },
    "livingroom": {
        "Book": {"CoffeeTable": 4, "Sofa": 2, "Dresser": 2, "ArmChair": 1, "SideTable": 2, "Drawer": 2},
        "Box": {"DiningTable": 3, "Sofa": 3, "CoffeeTable": 3, "SideTable": 2, "Cabinet": 2},
        "Candle": {"SideTable": 3, "CoffeeTable": 3, "DiningTable": 2, "Drawer": 2, "Cabinet": 1},
        "CellPhone": {"Dresser": 2, "SideTable": 3, "CoffeeTable": 3, "Sofa": 2, "Drawer": 3},
        "CreditCard": {"Sofa": 3, "CoffeeTable": 3, "Drawer": 4, "ArmChair": 2, "SideTable": 2},
        "KeyChain": {"CoffeeTable": 3, "SideTable": 3, "Drawer": 4, "Sofa": 2, "TVStand": 1},
        "Laptop": {"Sofa": 4, "CoffeeTable": 4, "DiningTable": 3, "Dresser": 1, "SideTable": 1},
        "Newspaper": {"Sofa": 3, "CoffeeTable": 3, "DiningTable": 2, "SideTable": 2, "Drawer": 2, "ArmChair": 1},
        "Pen": {"CoffeeTable": 3, "SideTable": 2, "Drawer": 3, "Dresser": 2, "Shelf": 1},
        "Pencil": {"SideTable": 3, "CoffeeTable": 3, "Drawer": 3, "TVStand": 1, "Shelf": 1},
        "Pillow": {"Sofa": 5, "ArmChair": 3},
        "RemoteControl": {"CoffeeTable": 4, "Sofa": 3, "SideTable": 2, "Drawer": 3, "TVStand": 2},
        "Statue": {"CoffeeTable": 3, "Shelf": 3, "SideTable": 3, "TVStand": 1, "Dresser": 1},
        "TissueBox": {"CoffeeTable": 3, "SideTable": 3, "Shelf": 1, "Drawer": 2, "Cabinet": 1},
        "Vase": {"Shelf": 4, "CoffeeTable": 3, "SideTable": 2, "Cabinet": 2, "Dresser": 1},
        "Watch": {"CoffeeTable": 3, "Drawer": 4, "SideTable": 3, "TVStand": 1, "Shelf": 1},
        "WateringCan": {"CoffeeTable": 3, "Shelf": 2, "SideTable": 2, "Drawer": 1, "Cabinet": 1},
    },
    "bedroom": {
        "AlarmClock": {"Desk": 4, "Shelf": 3, "SideTable": 3, "Dresser": 3},
        "Book": {"Bed": 4, "Desk": 3, "Drawer": 3, "SideTable": 1, "Cabinet": 1},
        "Bowl": {"Desk": 3, "Shelf": 3, "Dresser": 1, "SideTable": 1, "Cabinet": 1},
        "CD": {"Drawer": 4, "Desk": 3, "Dresser": 2, "SideTable": 2, "Shelf": 1, "GarbageCan": 1},
        "CellPhone": {"Bed": 4, "Desk": 3, "Drawer": 3, "SideTable": 1, "Dresser": 1},
        "CreditCard": {"Drawer": 4, "Shelf": 2, "Desk": 3, "SideTable": 2, "Dresser": 1, "Safe": 1},
        "KeyChain": {"Drawer": 4, "Desk": 3, "SideTable": 2, "Shelf": 2, "Dresser": 1, "Safe": 2},
        "Laptop": {"Bed": 5, "Desk": 4, "Dresser": 1},
        "Mug": {"Desk": 4, "Shelf": 2, "SideTable": 2, "Dresser": 1, "Cabinet": 1},
        "Pen": {"Desk": 4, "Drawer": 3, "Shelf": 2, "SideTable": 2},
        "Pencil": {"Desk": 3, "Drawer": 3, "SideTable": 2, "Shelf": 2},
        "Pillow": {"Bed": 6, "ArmChair": 2},
        "RemoteControl": {"Drawer": 4, "Desk": 3, "SideTable": 2},
        "Statue": {"Shelf": 4, "Dresser": 2, "Desk": 2, "Safe": 1},
        "TissueBox": {"Desk": 3, "Drawer": 3, "Shelf": 2, "SideTable": 1},
        "Vase": {"Shelf": 4, "Dresser": 2, "Desk": 1, "Safe": 2},
        "Watch": {"Drawer": 4, "Shelf": 2, "Desk": 2, "SideTable": 2},
    },
    "bathroom": {
        "Candle": {"CounterTop": 4, "Toilet": 3, "Cabinet": 3, "Drawer": 3, "Shelf": 1},
        "Cloth": {"Cabinet": 4, "CounterTop": 3, "Drawer": 3, "BathtubBasin": 3, "Toilet": 1},
        "DishSponge": {"CounterTop": 3, "Drawer": 3, "Cabinet": 1, "SinkBasin": 1, "Shelf": 1},
        "HandTowel": {"HandTowelHolder": 6, "CounterTop": 3, "Cabinet": 2},
        "SoapBar": {"CounterTop": 4, "Toilet": 3, "SinkBasin": 2, "Cabinet": 3, "Drawer": 2, "BathtubBasin": 2},
        "SoapBottle": {"CounterTop": 4, "Toilet": 2, "Cabinet": 4, "Shelf": 2, "GarbageCan": 1},
        "SprayBottle": {"CounterTop": 4, "Toilet": 3, "Cabinet": 4, "GarbageCan": 1, "Shelf": 1},
        "TissueBox": {"CounterTop": 3, "Shelf": 2, "Drawer": 3, "Cabinet": 1, "Cart": 1},
        "ToiletPaper": {"Toilet": 3, "CounterTop": 3, "Drawer": 3, "Cabinet": 3, "ToiletPaperHanger": 1},
    },
}
LAMP = "DeskLamp"
LAMP_PLACES = {
    "bedroom": {"Desk": 4, "SideTable": 3, "Dresser": 2, "Shelf": 1},
    "livingroom": {"SideTable": 5, "CoffeeTable": 1, "Dresser": 1},
}


def _types(words: str) -> frozenset[str]:
    return frozenset(words.split())


CLEANABLE = _types(
    """Apple Bowl ButterKnife Cloth Cup DishSponge Egg Fork Kettle Knife Ladle Lettuce Mug Pan Plate Pot Potato
    SoapBar Spatula Spoon Tomato"""
)
HEATABLE = _types("Apple Bread Cup Egg Mug Plate Potato Tomato")
COOLABLE = _types("Apple Bowl Bread Cup Egg Lettuce Mug Pan Plate Pot Potato Tomato WineBottle")
SLICEABLE = _types("Apple Bread Egg Lettuce Potato Tomato")
HOLLOW = _types("Bowl Box Cup Mug Pan Plate Pot")
"""Objects that hold things (``isReceptacleObject``): examining one gives another text."""

_TABLE = """AlarmClock Apple Book Bowl Box Bread ButterKnife CD Candle CellPhone Cloth CreditCard Cup DishSponge Egg
Fork Kettle KeyChain Knife Laptop Lettuce Mug Newspaper Pan Pen Pencil PepperShaker Plate Pot Potato
RemoteControl SaltShaker SoapBottle Spatula Spoon SprayBottle Statue TissueBox Tomato Vase Watch WateringCan
WineBottle"""
CAN_CONTAIN: dict[str, frozenset[str]] = {
    "ArmChair": _types("Book Box CellPhone Cloth CreditCard KeyChain Laptop Newspaper Pillow RemoteControl"),
    "BathtubBasin": _types("Cloth DishSponge HandTowel SoapBar"),
    "Bed": _types("Book CellPhone Laptop Pillow"),
    "Cabinet": _types(
        """Book Bowl Box CD Candle Cloth Cup DishSponge HandTowel Kettle Ladle Mug Newspaper Pan PepperShaker
        Plate Pot SaltShaker SoapBar SoapBottle SprayBottle TissueBox ToiletPaper Vase WateringCan WineBottle"""
    ),
    "Cart": _types("Candle Cloth DishSponge HandTowel SoapBar SoapBottle SprayBottle TissueBox ToiletPaper"),
    "CoffeeMachine": _types("Mug"),
    "CoffeeTable": _types(
        """Book Bowl Box Candle CellPhone CreditCard KeyChain Laptop Newspaper Pen Pencil Plate RemoteControl
        Statue TissueBox Vase Watch WateringCan"""
    ),
    "CounterTop": _types(
        """AlarmClock Apple Book Bowl Bread ButterKnife CD Candle CellPhone Cloth CreditCard Cup DishSponge Egg
        Fork HandTowel Kettle KeyChain Knife Ladle Laptop Lettuce Mug Pan Pen Pencil PepperShaker Plate Pot
        Potato RemoteControl SaltShaker SoapBar SoapBottle Spatula Spoon SprayBottle Statue TissueBox
        ToiletPaper Tomato Vase WineBottle"""
    ),
    "Desk": _types(
        """AlarmClock Book Bowl Box CD CellPhone Cloth CreditCard KeyChain Laptop Mug Pen Pencil RemoteControl
        Statue TissueBox Vase Watch WateringCan"""
    ),
    "DiningTable": _types(_TABLE + " Ladle"),
    "Drawer": _types(
        """Book ButterKnife CD Candle CellPhone Cloth CreditCard DishSponge Fork HandTowel KeyChain Knife Ladle
        Newspaper Pen Pencil PepperShaker RemoteControl SaltShaker SoapBar SoapBottle Spatula Spoon
        SprayBottle TissueBox ToiletPaper Watch WateringCan"""
    ),
    "Dresser": _types(
        """AlarmClock Book Bowl Box CD Candle CellPhone Cloth CreditCard KeyChain Laptop Mug Newspaper Pen Pencil
        Plate RemoteControl SprayBottle Statue TissueBox ToiletPaper Vase Watch WateringCan"""
    ),
    "Fridge": _types("Apple Bowl Bread Cup Egg Lettuce Mug Pan Plate Pot Potato Tomato WineBottle"),
    "GarbageCan": _types(
        """Apple Bread CD Cloth DishSponge Egg HandTowel Lettuce Newspaper Pen Pencil Potato SoapBar SoapBottle
        SprayBottle TissueBox ToiletPaper Tomato WineBottle"""
    ),
    "HandTowelHolder": _types("HandTowel"),
    "LaundryHamper": _types("Cloth"),
    "Microwave": _types("Apple Bowl Bread Cup Egg Mug Plate Potato Tomato"),
    "Ottoman": _types("Book Box CellPhone CreditCard KeyChain Laptop Newspaper Pillow RemoteControl"),
    "Safe": _types("CD CellPhone CreditCard KeyChain Statue Vase"),
    "Shelf": _types(
        """AlarmClock Book Bowl Box CD Candle CellPhone Cloth CreditCard Cup DishSponge HandTowel Kettle KeyChain
        Mug Newspaper Pen Pencil PepperShaker Plate Pot RemoteControl SaltShaker SoapBar SoapBottle
        SprayBottle Statue TissueBox ToiletPaper Vase Watch WateringCan WineBottle"""
    ),
    "SideTable": _types(_TABLE + " HandTowel SoapBar ToiletPaper"),
    "SinkBasin": _types(
        """Apple Bowl ButterKnife Cloth Cup DishSponge Egg Fork HandTowel Kettle Knife Ladle Lettuce Mug Pan
        Plate Pot Potato SoapBar Spatula Spoon Tomato"""
    ),
    "Sofa": _types("Book Box CellPhone CreditCard KeyChain Laptop Newspaper Pillow RemoteControl"),
    "StoveBurner": _types("Kettle Pan Pot"),
    "TVStand": _types("TissueBox"),
    "Toaster": _types(""),
    "Toilet": _types("Candle Cloth DishSponge HandTowel SoapBar SoapBottle SprayBottle TissueBox ToiletPaper"),
    "ToiletPaperHanger": _types("ToiletPaper"),
}
