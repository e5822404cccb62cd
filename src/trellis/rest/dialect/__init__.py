"""Keys that want another dialect than our own: their requests and answers, translated around the same operations."""

from trellis.rest.dialect.translator import TRANSLATORS, Translator, allows_key_in_url, encode_answer

__all__ = ["TRANSLATORS", "Translator", "allows_key_in_url", "encode_answer"]
