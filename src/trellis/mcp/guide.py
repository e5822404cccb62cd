"""Texts that describe the service to agents: a few sentences to begin with, and a page."""

from typing import Final

INSTRUCTIONS: Final = (
    "Trellis keeps the structure of a community: forums, calendars, download categories, groups and blogs. "
    "Every tool that writes takes dryRun: true, which shows what would happen and changes nothing; use it before deletes. "
    "A refusal says what was wrong and what to do; missingOperation is a grant that only a person can give. "
    "Each write records an event, which events.restore undoes. Read trellis://guide for more."
)

GUIDE: Final = """# Trellis, for agents

A community's structure is a set of *nodes* of several kinds: forums and download categories form trees; calendars form an
ordered list; groups and blogs are lists. Each kind has its own ids. A tool is named for what it is about and what it does:
`forums.create`. You have the tools that an administrator has granted your key; `core.hello` lists them.

- **Look first.** `*.list` returns one page (`page`, `perPage`); `totalResults` says how many there are. `*.tree` returns a whole
  tree, and is the resource `trellis://tree/…`.
- **Try before you write.** With `dryRun: true` the whole operation runs, with every check, and is rolled back. For a delete the
  answer is what would be deleted, moved and changed. Do this before every delete, and show the counts to whoever you work for.
- **Change only what you mean to.** Members that you do not send keep their values. `parentId` with at most one of `position`
  (counted from 0), `before` and `after` (the id of a sibling) moves a node. `externalId` is the node's id in another system.
- **Deleting** a node with children is refused until `deleteChildrenOrMove` says what happens to them: -1 deletes them all, an id
  moves them there.
- **Permissions** map each option to `"*"`, every group, or to a list of group ids; `[]` is nobody.
- **Many changes at once**: `core.batch` does all or nothing. `{"$ref": "news.id"}` is the id of the record that the step with
  `"as": "news"` created.
- **Undo.** Each write records an event, and the result has its number. `events.restore` undoes it; `changesets.restore` undoes a
  whole batch.
- **Refusals** are tool errors with `errorMessage`, `detail` and, for each member at fault, `errors`. Read `detail`: it says what to
  do. After 429 or 503, wait for `retryAfter` seconds (1 if there is none). Retrying does not help after `NO_PERMISSION`: tell a
  person that `missingOperation` has to be granted.
"""
