"""Translates requests and answers of keys with another dialect than our own; the operations behind them are the same."""

from trellis.rest.dialect.translator import TRANSLATORS, Translator, allows_key_in_url, encode_answer
