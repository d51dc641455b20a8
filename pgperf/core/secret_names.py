"""Names that say that their value is a secret: of fields, keys in JSON, environment variables."""

import re

#: In small letters with underscores: password, api_key_hash.
_NAME = re.compile(
    r"(^|_)(password|passwd|passphrase|passcode|pwd|secret|token|otp|totp|credential|salt"
    r"|(api|private|secret|access|session|signing|encryption)_?key|session_data|(recovery|backup)_?code)s?"
    r"(_(hash|digest|key|value|salt|encrypted|data|seed))?$"
)


def is_secret_name(name: str) -> bool:
    """Is it the name of a secret? `apiKey` counts as `api_key`."""
    return bool(_NAME.search(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("-", "_")))
