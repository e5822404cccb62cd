"""Functions that templates mark texts with. Each looks its text up in the language of the page, found in the template's context.

`{% trans name=key.name %}Created by <b>{{ name }}</b>{% endtrans %}` calls `gettext`; with `{% pluralize %}`, or written as
`ngettext("%(num)s key", "%(num)s keys", count)`, it is the form for the number; `_("Save")` is for texts without HTML, in
attributes and as arguments of macros. Values are escaped, numbers get thousands separators, and the direction of each text is
isolated.
"""

from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup, soft_str

from trellis.core.fields import isolate
from trellis.core.nodes import NodeKind
from trellis.languages.language import Language
from trellis.sentences import Sentence


@pass_context
def translate(context: Context, text: str) -> str:
    """Return a text without HTML, or a sentence, in the language of the page."""
    language = _language_of(context)
    return language.sentence(text) if isinstance(text, Sentence) else language.text(text)


@pass_context
def translate_marked(context: Context, text: str, /, **values: Any) -> Markup:
    """Return a text of a template, which may contain HTML, in the language of the page."""
    language = _language_of(context)
    return Markup(language.text(text)) % _prepare(language, values)  # noqa: S704  # templates and catalogues are ours


@pass_context
def count_marked(context: Context, one: str, many: str, count: int, /, **values: Any) -> Markup:
    """Return the form of a text for a number, which is the value `num` in the text."""
    language = _language_of(context)
    return Markup(language.counted(one, many, count)) % _prepare(language, {"num": count} | values)  # noqa: S704  # the same


@pass_context
def count_nodes(context: Context, kind: NodeKind, count: int) -> Markup:
    """Return the number of nodes of a kind as a text: `1 forum`, `3 forums`."""
    return count_marked(context, f"%(num)s {kind.singular}", f"%(num)s {kind.title.lower()}", count)


@pass_context
def format_text(context: Context, template: str, *values: Any) -> str:
    """Format a text as Jinja's `format` does, with the direction of each value isolated, and sentences in the page's language."""
    language = _language_of(context)
    return soft_str(template) % tuple(_say(language, value) for value in values)


@pass_context
def show(context: Context, value: Any) -> Any:
    """Return a value as a page shows it: sentences in its language, and text with its direction isolated, unless it is HTML.

    `|exact` shows a value unchanged.
    """
    if type(value) is str:  # as most are, of hundreds: without a look for the language
        return isolate(value)
    return _say(_language_of(context), value) if isinstance(value, str) else value


def _language_of(context: Context) -> Language:
    language: Language = context["language"]
    return language


def _prepare(language: Language, values: dict[str, Any]) -> dict[str, Any]:
    return {name: _show(language, value) for name, value in values.items()}


def _show(language: Language, value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return language.number(value)
    return _say(language, value)


def _say(language: Language, value: Any) -> Any:
    return isolate(language.sentence(value)) if isinstance(value, str) and not isinstance(value, Markup) else value
