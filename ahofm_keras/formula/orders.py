"""Orders of interactions, their ranks and degrees of freedom, as a formula asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ahofm_keras.formula.checks import AUTO

# D where it is not given, and the highest order that the data may choose: of more features at once a
# surface can hardly be read, and sums over all subsets of them take long.
_USUAL_ORDER = 3
_HIGHEST_ORDER = 4


def check_orders(name: str, options: Mapping[str, Any], features: list[str]) -> str | None:
    """What is wrong with `D`, `orders`, and the lengths of `F` and `df`, or None.

    `D` must not exceed the number of features; `F=(10, 5)` has one entry per order of interaction;
    `df=(15, 8, 5)` one per order, main effects first where there are any.
    """
    count, listed = len(features), list_features(features)
    if "D" in options and "orders" in options:
        return f"`{name}()` takes `D` or `orders`, not both."
    if "D" in options and not is_automatic_order(options) and not 2 <= options["D"] <= count:
        return (
            f"`D` of `{name}()` must lie between 2 and its number of features.\n"
            f"    Received: D={options['D']} with {count} features ({listed})."
        )
    orders = _written_orders(options, count)
    if max(orders) > count:
        return (
            f"`orders` of `{name}()` must not exceed its number of features.\n"
            f"    Received: orders={options['orders']!r} with {count} features ({listed})."
        )
    return _check_ranks(name, options, orders) or _check_df(name, options, orders)


def list_features(features: list[str]) -> str:
    """Features as messages list them, the first six."""
    more = ", ..." if len(features) > 6 else ""
    return ", ".join(f"`{feature}`" for feature in features[:6]) + more


def _check_ranks(name: str, options: Mapping[str, Any], orders: tuple[int, ...]) -> str | None:
    rank = options.get("F")
    if not isinstance(rank, tuple) or len(rank) == len(orders):
        return None
    return (
        f"`F` of `{name}()` needs one number per order of interaction "
        f"({len(orders)}: {_listed(orders)}).\n    Received: F={rank!r}."
    )


def _check_df(name: str, options: Mapping[str, Any], orders: tuple[int, ...]) -> str | None:
    given = options.get("df")
    all_orders = (1, *orders) if options.get("main", True) else orders
    for value in given.values() if isinstance(given, dict) else (given,):
        if isinstance(value, tuple) and len(value) != len(all_orders):
            return (
                f"`df` of `{name}()` needs one number per order "
                f"({len(all_orders)}: {_listed(all_orders)}).\n    Received: df={value!r}."
            )
    return None


def sort_orders(options: Mapping[str, Any]) -> dict[str, Any]:
    """The same options with `orders` in rising order, and the tuples of `F` and `df` moved alike."""
    orders = options.get("orders")
    if not isinstance(orders, tuple):
        return dict(options)
    moves = sorted(range(len(orders)), key=orders.__getitem__)

    def move(value: Any) -> Any:
        if isinstance(value, dict):
            return {feature: move(each) for feature, each in value.items()}
        if not isinstance(value, tuple):
            return value
        main = len(value) - len(orders)
        return value[:main] + tuple(value[main + place] for place in moves)

    moved = {option: move(options[option]) for option in ("orders", "F", "df") if option in options}
    return {**options, **moved}


def interaction_orders(options: Mapping[str, Any], count: int) -> tuple[int, ...]:
    """Orders of interaction that a term asks for, rising: `orders`, or 2..D.

    D is 3 where it is not given (`afm` and `fm` give 2), or the number of features if that is less.
    Where the data chooses it these are all that it may choose.
    """
    return tuple(sorted(_written_orders(options, count)))


def _written_orders(options: Mapping[str, Any], count: int) -> tuple[int, ...]:
    if "orders" in options:
        given = options["orders"]
        return given if isinstance(given, tuple) else (given,)
    highest = _HIGHEST_ORDER if is_automatic_order(options) else options.get("D", _USUAL_ORDER)
    # That a D which was given is not larger, `check_orders` sees to.
    return tuple(range(2, min(highest, count) + 1))


def is_automatic_order(options: Mapping[str, Any]) -> bool:
    """Whether the data chooses up to which order there are interactions."""
    return options.get("D") == AUTO


def _listed(orders: tuple[int, ...]) -> str:
    return ", ".join(f"order {order}" for order in orders)
