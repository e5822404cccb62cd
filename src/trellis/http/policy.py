"""Headers that keep browsers from doing anything with answers that are not pages."""

from typing import Final

# default-src does not cover all of these directives (CSP 3, 6.3.1 and 6.4.2).
POLICY: Final = (b"content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
NO_SNIFFING: Final = (b"x-content-type-options", b"nosniff")
