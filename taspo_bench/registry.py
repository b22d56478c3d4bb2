"""Benchmarks and methods by name, found through entry points.

A benchmark stands in the group ``taspo_bench.envs`` under the name of its Gymnasium id without the namespace
(``ALFWorld-v0``); its short name is that in lower case without the version (``alfworld``). A credit scheme stands
in ``taspo_bench.methods`` under its method name. Nothing is imported before it is asked for.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taspo_bench.errors import InputError, unknown_name

if TYPE_CHECKING:
    from taspo_bench.api import TextEnv
    from taspo_bench.credit import CreditScheme

NAMESPACE = "taspo"
ENVS = "taspo_bench.envs"
METHODS = "taspo_bench.methods"


def _unique(group: str, kind: str) -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        other = found.setdefault(point.name, point)
        if other.value != point.value:
            raise InputError(
                f"two {kind}s are named {point.name!r}: {_origin(other)} and {_origin(point)}; uninstall one of them"
            )
    return dict(sorted(found.items()))


def _origin(point: EntryPoint) -> str:
    package = point.dist.name if point.dist else "an unknown package"
    return f"{point.value} ({package})"


@cache
def env_entry_points() -> dict[str, EntryPoint]:
    """Short name -> entry point of each installed benchmark."""
    found: dict[str, EntryPoint] = {}
    for name, point in _unique(ENVS, "benchmark").items():
        other = found.setdefault(short_name(name), point)
        if other is not point:
            raise InputError(
                f"two benchmarks are {short_name(name)!r} for short: {_origin(other)} and {_origin(point)}; "
                "uninstall one of them"
            )
    return found


def short_name(gym_name: str) -> str:
    """``ALFWorld-v0`` -> ``alfworld``."""
    return gym_name.rpartition("-v")[0].lower() or gym_name.lower()


def env_class(name: str) -> type[TextEnv]:
    """The class of a benchmark by its short name."""
    points = env_entry_points()
    if name not in points:
        raise unknown_name("environment", name, points)
    loaded: type[TextEnv] = _load("benchmark", points[name])
    return loaded


def _load(kind: str, point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:
        raise InputError(
            f"{kind} {point.name!r}: {_origin(point)} does not load ({error!r}); mend or uninstall the package"
        ) from error


def make_env(name: str, **kwargs: Any) -> TextEnv:
    """A new environment by short name, without Gymnasium's wrappers."""
    return env_class(name)(**kwargs)


def suite_names() -> list[str]:
    """The benchmarks that ``--env all`` stands for; one of a package that does not load is left out."""
    names = []
    for name in env_entry_points():
        with suppress(InputError):
            if env_class(name).in_suite:
                names.append(name)
    return names


@cache
def method_entry_points() -> dict[str, EntryPoint]:
    """Method name -> entry point of each installed credit scheme."""
    return _unique(METHODS, "method")


def method_class(name: str) -> type[CreditScheme]:
    """A credit scheme by its name, or ``path/to/file.py:Scheme`` for one that is in no package."""
    path, colon, attribute = name.rpartition(":")
    if colon and path.endswith(".py"):
        return _from_file(Path(path), attribute)
    points = method_entry_points()
    if name not in points:
        raise unknown_name("method", name, points)
    return _scheme(name, _load("method", points[name]))


def _scheme(name: str, loaded: Any) -> type[CreditScheme]:
    """What was loaded, if it is a class with all that a credit scheme has."""
    if not isinstance(loaded, type):
        raise InputError(f"method {name}: not a class; see docs/add_a_scheme.md")
    has = {
        "name (a text)": isinstance(getattr(loaded, "name", None), str),
        "uses_guidance (True or False)": isinstance(getattr(loaded, "uses_guidance", None), bool),
        "method credit": callable(getattr(loaded, "credit", None)),
    }
    if missing := [part for part, is_there in has.items() if not is_there]:
        raise InputError(f"method {name}: the class has no {', no '.join(missing)}; see docs/add_a_scheme.md")
    scheme: type[CreditScheme] = loaded
    return scheme


def _from_file(path: Path, attribute: str) -> type[CreditScheme]:
    if not path.is_file():
        raise InputError(f"method {path}:{attribute}: there is no file {path}")
    module_name = f"taspo_bench_method_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"method {path}:{attribute}: the file does not import: {error!r}") from error
    if not hasattr(module, attribute):
        raise InputError(f"method {path}:{attribute}: the file defines no {attribute}")
    return _scheme(f"{path}:{attribute}", getattr(module, attribute))


def service(name: str) -> Callable[[str, str, int], None]:
    """What ``taspo-bench serve NAME`` runs: a function of data, host and port that serves until it is stopped."""
    points = _unique("taspo_bench.services", "service")
    if name not in points:
        raise unknown_name("service", name, points)
    loaded: Callable[[str, str, int], None] = points[name].load()
    return loaded


def register_gymnasium_ids() -> None:
    """Register every installed benchmark with Gymnasium, as ``taspo/NAME``."""
    import gymnasium as gym

    for point in _unique(ENVS, "benchmark").values():
        env_id = f"{NAMESPACE}/{point.name}"
        if env_id not in gym.registry:
            # The order enforcer and the passive checker would hide snapshot, restore and solve.
            gym.register(id=env_id, entry_point=point.value, order_enforce=False, disable_env_checker=True)
