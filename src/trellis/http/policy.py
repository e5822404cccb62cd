"""What browsers may do with answers that are no pages: nothing."""

from typing import Final

# Not all of it follows from default-src (CSP 3, 6.3.1 and 6.4.2).
POLICY: Final = (b"content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
NO_SNIFFING: Final = (b"x-content-type-options", b"nosniff")
