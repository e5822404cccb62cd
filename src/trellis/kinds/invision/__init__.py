"""The dialect of Invision Community 4: what its clients send and read, one declaration for each kind.

Facts are from its public reference and from recorded answers.
"""

from typing import Final

from trellis.core.dialect import INVISION as NAME
from trellis.core.dialect import Dialect, declare_constant, declare_copy
from trellis.kinds.invision.blogs import BLOGS
from trellis.kinds.invision.calendars import CALENDARS
from trellis.kinds.invision.categories import CATEGORIES
from trellis.kinds.invision.forums import FORUMS
from trellis.kinds.invision.groups import GROUPS

_TEXT: Final = {"type": "string"}

INVISION: Final = Dialect(
    name=NAME,
    title="Invision Community",
    doc="The paths, names, shapes and errors that clients of Invision Community 4 send and read.",
    kinds={
        "groups": GROUPS,
        "forums": FORUMS,
        "blogs": BLOGS,
        "calendars": CALENDARS,
        "categories": CATEGORIES,
    },
    answers={
        "core.hello": (
            declare_copy("communityName", _TEXT, "The community's name."),
            declare_copy("communityUrl", _TEXT, "The community's address."),
            declare_constant("ipsVersion", "4.2.0", _TEXT, "The release whose endpoints these are."),
            declare_copy("version", _TEXT, "The version of this service."),
            declare_copy("key", {"type": "object"}, "The key that sent the request."),
        ),
    },
    statuses={"HAS_CHILDREN": 404, "INVALID_TARGET": 404},
    clamped=frozenset(("page", "perPage")),
    ignored=frozenset(("sortBy", "sortDir")),
    key_in_url=True,
    error_type="application/json;charset=UTF-8",
    rules=(
        "Parameters are named as in release 4.2. Unknown parameters are ignored, and so is an unknown `sortBy`.",
        "A `page` or `perPage` out of range is set to the nearest value that is allowed.",
        "The top level is -1 for forums and null elsewhere; -1, 0, an empty text and null all mean it, in updates too.",
        "An empty value means 'not set', except in texts; so does 0 for `theme` and `sitemap_priority`.",
        "A permission that a create leaves out is given to nobody, even if the node has a parent.",
        "A forum without a type becomes a `category`; a download category without a title gets one.",
        "An error is an object with `errorCode` and `errorMessage` and nothing else. `HAS_CHILDREN` and `INVALID_TARGET` are 404.",
        "`core.hello` also returns `ipsVersion`, after `communityUrl`.",
        "The key may also be sent as `?key=KEY`, or as `X-API-Key` next to another `Authorization`.",
    ),
    cannot=(
        "Of Invision Community's endpoints, only those of groups, forums, blogs, calendars, download categories and hello exist.",
        "Members, topics, posts, files, events and pages are not stored here: their endpoints answer 404 NO_ENDPOINT.",
        "There are no clubs: `club` is always 0, and the parameter `clubs` is ignored.",
        "Topics, entries and comments are not counted: their numbers are always 0.",
        "Of a blog's owner, only the name is stored.",
        "Blogs and groups are created and changed in the administration panel and at the terminal, not with a key.",
        "OAuth is not supported: a client sends an API key.",
        "Descriptions, flags and positions are accepted, but not returned, except a blog's description and whether it is pinned.",
        "Errors have a code and a name, but no details.",
    ),
)
