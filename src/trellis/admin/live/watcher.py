"""Looks for news, once for all streams of a process, and ends the streams whose session has ended.

While there are streams, one task checks whether anything was committed, which takes no query; only then does it read what has
changed. On PostgreSQL, where commits of the request log are not announced, it also reads once a second.
"""

import asyncio
import logging
from collections import Counter
from typing import Final

from trellis.admin.runner import Runner
from trellis.core.admins import SignedIn, find_live_sessions
from trellis.core.news import ANYTHING, News, Position, limit_news, read_news, read_position
from trellis.errors import Refused
from trellis.sentences import say

log = logging.getLogger(__name__)

_LOOK_EVERY: Final = 0.25  # seconds
_READ_EVERY: Final = 1.0  # seconds, where not every commit is announced
_REST: Final = 10.0  # seconds to wait after an unexpected error
_JUDGE_EVERY: Final = 60.0  # seconds between two checks that the sessions are live
_SESSIONS_CHANGE_BY: Final = frozenset((ANYTHING, "events/admins"))
_PER_ADMINISTRATOR: Final = 4  # a browser opens six connections to one address; the others are for pages
_SHARE: Final = 8  # at most one in this many connections may be a stream


class Stream:
    """One page that receives news. `woken` is set when there is news for it, or when the stream should end."""

    def __init__(self, me: SignedIn) -> None:
        self.me = me
        self.woken = asyncio.Event()
        self.is_ended = False
        self._topics: set[str] = set()
        self._position: Position | None = None

    def add(self, news: News) -> None:
        """Add news to the news that was not sent yet."""
        self._position = news.position
        self._topics = self._topics | news.topics if ANYTHING not in self._topics else {ANYTHING}
        self.woken.set()

    def take(self) -> News | None:
        """Return the news to be sent, and forget it; None if there is none."""
        self.woken.clear()
        position, topics = self._position, frozenset(self._topics)
        self._position, self._topics = None, set()
        return None if position is None else News(position, topics)

    def end(self) -> None:
        """Ask the stream to end."""
        self.is_ended = True
        self.woken.set()


class Watcher:
    """The streams of one process. It belongs to one event loop."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._most = max(1, runner.settings.connections // _SHARE)
        self._streams: set[Stream] = set()
        self._held: Counter[int] = Counter()
        self._watching: asyncio.Task[None] | None = None
        self._beginning = asyncio.Lock()
        self._is_ended = False
        self._judge_at = 0.0

    @property
    def count(self) -> int:
        """How many streams there are."""
        return len(self._streams)

    def end(self) -> None:
        """End all streams and accept no more: the process is about to end."""
        self._is_ended = True
        for stream in self._streams:
            stream.end()

    async def open(self, me: SignedIn, since: Position | None) -> Stream:
        """Open a stream with the news since a position. The caller has to close it. Raises Refused if there are too many."""
        if self._is_ended:
            raise Refused("BUSY", say("The service is shutting down. Try again."))
        if self._held[me.id] >= _PER_ADMINISTRATOR or self.count >= self._most:
            raise Refused(
                "TOO_MANY_WAITING",
                say("Too many pages are receiving live updates already. This page checks for changes now and then instead."),
            )
        stream = Stream(me)
        self._streams.add(stream)
        self._held[me.id] += 1
        try:
            async with self._beginning:
                if self._watching is None:
                    self._watching = asyncio.create_task(self._watch(await self._runner.read(read_position)))
            # The watching task has read its position before this, and adds whatever comes later: at worst, news is sent twice.
            if since is None:
                news = News(await self._runner.read(read_position, me.actor))
            else:
                news = await self._runner.read(read_news, since, me.actor)
        except BaseException:
            self.close(stream)
            raise
        stream.add(news)
        return stream

    def close(self, stream: Stream) -> None:
        """Forget a stream."""
        if stream in self._streams:
            self._streams.remove(stream)
            self._held -= Counter((stream.me.id,))

    async def _watch(self, position: Position) -> None:
        """Look for news while there are streams."""
        clock, store = asyncio.get_running_loop().time, self._runner.gate.store
        commit, read_at, has_failed = None, 0.0, False
        self._judge_at = clock() + _JUDGE_EVERY
        try:
            while self._streams:
                await asyncio.sleep(_REST if has_failed else _LOOK_EVERY)
                last, now = store.last_commit(), clock()
                try:
                    if last is not None and (last != commit or not (store.reads_inline or now < read_at)):
                        news = await self._runner.read(read_news, position)
                        if not _SESSIONS_CHANGE_BY.isdisjoint(news.topics):
                            self._judge_at = 0.0
                            await self._judge(now)  # before news is sent according to a role that somebody no longer has
                        commit, read_at, position = last, now + _READ_EVERY, news.position
                        self._tell(news)
                    await self._judge(now)
                    has_failed = False
                except Refused:  # the next round reads again
                    commit = None
                except Exception:
                    if not has_failed:
                        log.exception("Looking for news has failed.")
                    commit, has_failed = None, True
        finally:
            self._watching = None

    def _tell(self, news: News) -> None:
        """Add news to each stream, as far as its administrator's role may read about it."""
        if news.topics:
            for stream in self._streams:
                if not stream.is_ended and (seen := limit_news(news, stream.me.actor)).topics:
                    stream.add(seen)

    async def _judge(self, now: float) -> None:
        """If a check is due, end the streams whose session has ended or has another role now. Raises Refused."""
        if now < self._judge_at or not self._streams:
            return
        streams = tuple(self._streams)  # others may be opened while the sessions of these are read
        live = await self._runner.read(find_live_sessions, {stream.me.session for stream in streams})
        self._judge_at = now + _JUDGE_EVERY
        for stream in streams:
            if stream.me.session not in live or live[stream.me.session] is not stream.me.permit:
                stream.end()
