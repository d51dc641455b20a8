"""Models and fields that no query without code may read, whoever asks.

Settings refuse more (`REFUSED_MODELS`, `REFUSED_FIELDS`). A registered callable is code of the site
and may read all of them.
"""

import re
from typing import Any

from django.db import models

from pgperf.conf import get_settings
from pgperf.core.secret_names import is_secret_name

#: Base classes of models with sessions, tokens, keys, or copies of other rows: module -> classes.
MODELS = {
    "django.contrib.sessions.base_session": "AbstractBaseSession",
    "user_sessions.models": "Session",
    "rest_framework.authtoken.models": "Token",
    "rest_framework_api_key.models": "AbstractAPIKey",
    "rest_framework_simplejwt.token_blacklist.models": "OutstandingToken BlacklistedToken",
    "knox.models": "AbstractAuthToken AuthToken",
    "oauth2_provider.models": (
        "AbstractApplication AbstractGrant AbstractAccessToken AbstractRefreshToken AbstractIDToken"
        " AbstractDeviceGrant"
    ),
    "oidc_provider.models": "Client Code Token RSAKey",
    "allauth.account.models": "EmailConfirmation",
    "allauth.socialaccount.models": "SocialApp SocialToken SocialAccount",
    "allauth.mfa.models": "Authenticator",
    "allauth.usersessions.models": "UserSession",
    "allauth.idp.oidc.models": "Client Token",
    "social_django.models": "AbstractUserSocialAuth Association Nonce Code Partial",
    "django_otp.models": "Device",
    "django_otp.plugins.otp_static.models": "StaticToken",
    "reversion.models": "Version",
}
#: Apps whose rows have restrictions of their own, which no permission on the model shows: pgperf
#: hides rows by groups.
APPS = ("pgperf",)
#: Names of model classes, such as ApiToken.
_MODEL_NAME = re.compile(r"(Token|ApiKey|APIKey|Credential|Secret)s?$")
#: Names of field classes, such as EncryptedTextField.
_FIELD_CLASS = re.compile(r"Encrypted|Password|Secret|Token")
#: Fields that hold no secret, whatever their name.
_PLAIN = (models.BooleanField, models.DateField, models.TimeField, models.DurationField)


def is_secret_model(model: type[models.Model]) -> bool:
    """Are all rows of the model, or of a model that it inherits from, secret?"""
    return any(_is_secret_class(each) for each in model.__mro__ if hasattr(each, "_meta"))


def is_secret_field(field: Any) -> bool:
    """Does the field, or the field that a foreign key refers to, hold a secret?"""
    seen, found = [], [field]
    while found:
        each = found.pop()
        if each in seen:
            continue
        if _is_secret(each):
            return True
        seen.append(each)
        found += [*getattr(each, "foreign_related_fields", ()), *getattr(each, "fields", ())]
    return False


def _is_secret_class(model: Any) -> bool:
    if model.__name__ in MODELS.get(model.__module__, "").split() or _MODEL_NAME.search(model.__name__):
        return True
    label = model._meta.label_lower
    app = label.partition(".")[0]
    refused = [name.lower() for name in get_settings().REFUSED_MODELS]
    return app in APPS or label in refused or f"{app}.*" in refused


def _is_secret(field: Any) -> bool:
    label = f"{field.model._meta.label_lower}.{field.name}"
    if label in [name.lower() for name in get_settings().REFUSED_FIELDS]:
        return True
    if field.is_relation or isinstance(field, _PLAIN):
        return False
    classes = [each.__name__ for each in type(field).__mro__]
    return is_secret_name(field.name) or any(map(_FIELD_CLASS.search, classes))
