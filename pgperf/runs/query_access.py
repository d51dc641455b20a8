"""Asks whether a run may send its queries without code."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.core.exceptions import ValidationError

from pgperf.core.exceptions import InvalidDefinition
from pgperf.workloads import queries, query_access


def check(found: Iterable[Mapping[str, Any]], user: Any) -> None:
    """Raises InvalidDefinition if a query reads what no query may, or what the user may not view.

    None stands for a command, which needs no permission. Empty queries are of other workloads.
    """
    for query in filter(None, found):
        try:
            queries.check(query)
            if user is not None:
                query_access.check_user(query, user)
        except ValidationError as error:
            part, messages = next(iter(error.message_dict.items()))
            raise InvalidDefinition(f"{part}: {' '.join(messages)}") from None
