"""What a browser would send back of a page's form, unchanged."""

from typing import Any


def form_data(response: Any) -> dict[str, Any]:
    """The values of an admin page's form and of its inlines."""
    context = response.context
    formsets = [each.formset for each in context["inline_admin_formsets"]]
    forms = [context["adminform"].form, *(each.management_form for each in formsets)]
    forms += [form for formset in formsets for form in formset.initial_forms]
    found = {field.html_name: field.value() for form in forms for field in form}
    shown = [field for form in forms for field in form if field.field.show_hidden_initial]
    found |= {field.html_initial_name: field.initial for field in shown}
    return {name: value for name, value in found.items() if value is not None and value is not False}
