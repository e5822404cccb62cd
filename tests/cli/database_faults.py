"""Faults that can be planted in the database of the sample community, and what `trellis check` says of each."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A fault: how it is planted, and what the check says of it."""

    name: str
    sql: str
    resource: str
    id: str | None  # one of the sample community, by name
    problem: str
    detail: str
    repairable: bool = True


# Those of one tuple can be in one database.
_SOME = (
    Fault(
        "a parent that does not exist",
        "UPDATE nodes SET parent_id = 999, block_offset = 0 WHERE kind = 'forums' AND id = {betas}",
        "forums", "betas", "orphan", "its parent 999 does not exist",
    ),
    Fault(
        "a hole in the order of the top level",
        "UPDATE nodes SET block_offset = 7 WHERE kind = 'calendars' AND id = {holidays}",
        "calendars", None, "order", "the 2 calendars at the top level are not numbered from 0 to 1",
    ),
    Fault(
        "a permission for a group that is gone",
        "UPDATE nodes SET permissions = '{{\"view\": [3, 77], \"read\": \"*\", \"add\": [], \"reply\": [], \"attachments\": []}}' "
        "WHERE kind = 'forums' AND id = {help}",
        "forums", "help", "group", "view names groups that no longer exist: 77",
    ),
    Fault(
        "a field that names a group that is gone",
        "UPDATE nodes SET fields = '{{\"description\": \"\", \"owner\": \"\", \"groups\": [66], \"pinned\": false}}' "
        "WHERE kind = 'blogs' AND id = {notebook}",
        "blogs", "notebook", "group", "groups names groups that no longer exist: 66",
    ),
    Fault(
        "a permission option that is unknown",
        "UPDATE nodes SET permissions = '{{\"view\": [], \"read\": [], \"add\": [], \"reply\": [], \"review\": [], "
        "\"askrsvp\": [], \"rsvp\": [], \"dance\": \"*\"}}' WHERE kind = 'calendars' AND id = {meetups}",
        "calendars", "meetups", "permission", "it has an option 'dance', which does not belong to a calendar",
    ),
    Fault(
        "a field that its type does not take",
        "UPDATE nodes SET fields = '{{\"color\": \"blue\", \"approveEvents\": false, \"allowComments\": true, "
        "\"approveComments\": false, \"allowReviews\": true, \"approveReviews\": false}}' "
        "WHERE kind = 'calendars' AND id = {holidays}",
        "calendars", "holidays", "field", "color must be a colour as #RRGGBB, such as #3B82F6, not 'blue'.",
    ),
    Fault(
        "fields that are no object",
        "UPDATE nodes SET fields = '7' WHERE kind = 'categories' AND id = {tools}",
        "categories", "tools", "field", "its fields are not a JSON object",
    ),
    Fault(
        "a counter that counts too many",
        "UPDATE counters SET total = 12000 WHERE name = 'forums'",
        "forums", None, "counter", "the stored count is 12,000, but there are 7",
    ),
    Fault(
        "blanks around a name",
        "UPDATE nodes SET name = ' Help ', name_key = ' help ' WHERE kind = 'forums' AND id = {help}",
        "forums", "help", "name", "its name is stored as ' Help ', with spaces around it",
    ),
    Fault(
        "deleted ids that are miscounted",
        "UPDATE deleted_id_counts SET deleted = 3 WHERE kind = 'groups'",
        "groups", None, "gaps", "the counts of deleted ids are wrong in 2 ranges of ids",
    ),
    Fault(
        "a name that the index does not know",
        "UPDATE search_names SET name_key = 'hosts' WHERE kind = 'groups' AND id = 2",
        "search", None, "index", "1 name in the search index is missing or wrong",
    ),
)  # fmt: skip
_MORE = (
    Fault(
        "a cycle",
        "UPDATE nodes SET parent_id = {betas}, block_offset = 0 WHERE kind = 'forums' AND id = {releases}; "
        "UPDATE nodes SET block_offset = 0 WHERE kind = 'forums' AND id = {interviews}",
        "forums", "releases", "cycle", "it is below itself: 2 under 3 under 2",
    ),
    Fault(
        "a child under a redirect",
        "UPDATE nodes SET parent_id = {wiki}, block_offset = 0 WHERE kind = 'forums' AND id = {staff}",
        "forums", "staff", "leaf only", "its parent is 6, a redirect, which cannot have children",
    ),
    Fault(
        "a child in a kind without trees",
        "UPDATE nodes SET parent_id = {meetups}, block_offset = 0 WHERE kind = 'calendars' AND id = {holidays}",
        "calendars", "holidays", "nested", "its parent is 1, but calendars have no parents",
    ),
    Fault(
        "a permission option that is missing",
        "UPDATE nodes SET permissions = '{{\"read\": [], \"add\": [], \"reply\": [], \"review\": [], \"askrsvp\": [], "
        "\"rsvp\": []}}' WHERE kind = 'calendars' AND id = {meetups}",
        "calendars", "meetups", "permission", "the option view is missing; nobody has it",
    ),
    Fault(
        "permissions that are no object",
        "UPDATE nodes SET permissions = '[1, 2]' WHERE kind = 'forums' AND id = {help}",
        "forums", "help", "permission", "its permissions are not a JSON object",
    ),
    Fault(
        "a field of another type",
        "UPDATE nodes SET fields = '{{\"color\": \"#000000\", \"approveEvents\": \"true\", \"allowComments\": true, "
        "\"approveComments\": false, \"allowReviews\": true, \"approveReviews\": false}}' "
        "WHERE kind = 'calendars' AND id = {holidays}",
        "calendars", "holidays", "field", "approveEvents is stored as 'true'; today it would be true",
    ),
    Fault(
        "HTML that is not clean",
        "UPDATE nodes SET fields = '{{\"description\": \"<script>alert(1)</script>hi\", \"owner\": \"\", \"groups\": \"*\", "
        "\"pinned\": false}}' WHERE kind = 'blogs' AND id = {notebook}",
        "blogs", "notebook", "field", "description is stored as '<script>alert(1)</script>hi'; today it would be 'hi'",
    ),
    Fault(
        "a counter that would give an id again",
        "UPDATE counters SET last = 2 WHERE name = 'forums'",
        "forums", None, "counter", "the last id assigned is 2, but there is a 7",
    ),
    Fault(
        "a counter that is not there",
        "DELETE FROM counters WHERE name = 'blogs'",
        "blogs", None, "counter", "the stored count is 0, but there are 1 and the last id assigned is 0, but there is a 1",
    ),
    Fault(
        "the size of the request log",
        "UPDATE counters SET total = 77 WHERE name = 'request log bytes'",
        "requests", None, "counter", "the request log is recorded as 77 bytes, but has 0",
    ),
    Fault(
        "a name that is found under another",
        "UPDATE nodes SET name_key = 'olds' WHERE kind = 'forums' AND id = {news}",
        "forums", "news", "name key", "it is sorted and found as 'olds', but its name is 'News'",
    ),
    Fault(
        "deleted ids that are not counted",
        "DELETE FROM deleted_id_counts WHERE kind = 'groups' AND shift = 8",
        "groups", None, "gaps", "the count of deleted ids is wrong in 1 range of ids",
    ),
)  # fmt: skip
_ORDERED = (
    Fault(
        "two siblings in one place",
        "UPDATE nodes SET block_offset = 0 WHERE kind = 'forums' AND id = {interviews}",
        "forums", "news", "order", "the 2 forums under 1 are not numbered from 0 to 1",
    ),
    Fault(
        "the counter of the events",
        "UPDATE counters SET last = 3 WHERE name = 'events'",
        "events", None, "counter", "the last id assigned is 3, but there is a 15",
    ),
)  # fmt: skip
_LEFT_TO_PEOPLE = (
    Fault(
        "a name that is empty",
        "UPDATE nodes SET name = '', name_key = '' WHERE kind = 'forums' AND id = {help}",
        "forums", "help", "name", "its name must not be empty", repairable=False,
    ),
    Fault(
        "a time that is none",
        "UPDATE nodes SET updated_at = 'yesterday' WHERE kind = 'forums' AND id = {help}",
        "forums", "help", "moment", "the time of its last change is stored as 'yesterday'", repairable=False,
    ),
    Fault(
        "a kind that there is not",
        "UPDATE nodes SET kind = 'galleries' WHERE kind = 'blogs'; UPDATE counters SET last = 0, total = 0 WHERE name = 'blogs'; "
        "UPDATE node_changes SET kind = 'galleries' WHERE kind = 'blogs'",
        "galleries", None, "kind", "1 row is of a kind that is not declared", repairable=False,
    ),
    Fault(
        "a built-in group that is gone",
        "DELETE FROM nodes WHERE kind = 'groups' AND id = 2; UPDATE counters SET total = 4 WHERE name = 'groups'; "
        "UPDATE nodes SET block_offset = block_offset - 1 WHERE kind = 'groups'; "
        "DELETE FROM search_names WHERE kind = 'groups' AND id = 2; "
        "UPDATE deleted_id_counts SET deleted = 2 WHERE kind = 'groups'",
        "groups", "guests", "built in", "this built-in group is missing", repairable=False,
    ),
    Fault(
        "an external id by which documents know a built-in group",
        "UPDATE nodes SET external_id = 'members' WHERE kind = 'groups' AND id = {patrons}",
        "groups", "patrons", "external id", "its external id is 'members', by which structure documents know the group 3. Give it "
        "another: trellis run groups.update id=6 externalId=", repairable=False,
    ),
)  # fmt: skip
_GONE = (
    Fault(
        "an event that is missing",
        "DELETE FROM events WHERE seq IN (4, 5)",
        "events", None, "gap", "events 4 to 5 are missing from the log", repairable=False,
    ),
)  # fmt: skip
FAULTS = (_SOME, _MORE, _ORDERED, _LEFT_TO_PEOPLE, _GONE)
