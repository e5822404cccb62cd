"""The reader's progress: how far it is, and how much there is, as far as that is known."""

from contextlib import closing

from tests.old_community import KEY, OldCommunity
from trellis.invision.live import Client, Reader


def test_its_progress_never_goes_back_and_ends_with_all() -> None:
    progress: list[tuple[int, int]] = []
    with OldCommunity() as old, closing(Client(old.url.rstrip("/"), KEY, rate=1000)) as client:
        lists = {path: [path] for path in old.lists}
        answers = Reader(client, 2, lambda done, total: progress.append((done, total))).read(lists)
        count = sum(map(len, old.lists.values()))
    assert progress == sorted(progress)
    assert progress[-1] == (count, count)
    assert all(done <= total for done, total in progress)
    assert sum(len(answers.find_records([path]) or ()) for path in lists) == count
