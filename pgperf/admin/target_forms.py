"""The targets on the form of their database."""

from functools import cached_property

from django.core.exceptions import ValidationError
from django.forms import BaseInlineFormSet, ModelForm
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pgperf.models import Target


class TargetFormSet(BaseInlineFormSet):
    """Each route belongs to one target, also where the stored targets are not those of the form."""

    default_error_messages = {"too_many_forms": gettext_lazy("A database has at most %(num)d targets.")}

    def clean(self) -> None:
        """Raises ValidationError for a route that another stored target has when this form is saved.

        Another user may have added it since the form was opened. Targets are saved one after the
        other, so none can take the route of another that changes in the same form.
        """
        super().clean()
        if taken := sorted({form.instance.route for form in self.forms if self._is_taken(form)}):
            raise ValidationError(
                _("Another target has the route %s. Save that one under a new route, or delete it, first.")
                % ", ".join(taken)
            )

    def _is_taken(self, form: ModelForm) -> bool:
        if form in self.deleted_forms or not form.has_changed():
            return False
        return self._holders.get(form.instance.route) not in (None, form.instance.pk)

    @cached_property
    def _holders(self) -> dict[str, int]:
        """Route -> the stored target that has it."""
        stored = Target.objects.filter(database=self.instance.pk)
        return dict(stored.values_list("route", "pk"))
