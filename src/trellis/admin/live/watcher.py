"""Looks for news, once for all streams of a process, and ends those whose session has ended.

While there are streams, one task looks whether anything was committed, which is no query; only then does it read what that was. On
PostgreSQL, where the commits of the request log tell nobody, it also reads once a second.
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
_READ_EVERY: Final = 1.0  # seconds, where not every commit is told
_REST: Final = 10.0  # seconds after something that nobody expected has gone wrong
_JUDGE_EVERY: Final = 60.0  # seconds between two looks at whether the sessions are live
_SESSIONS_CHANGE_BY: Final = frozenset((ANYTHING, "events/admins"))
PER_ADMINISTRATOR: Final = 4  # a browser opens six connections to one address; the others are for pages
_SHARE: Final = 8  # of all connections this part may be streams


class Stream:
    """One page that is told of news. `woken` is set when there is something to tell, or when it is to end."""

    def __init__(self, me: SignedIn) -> None:
        self.me = me
        self.woken = asyncio.Event()
        self.is_ended = False
        self._topics: set[str] = set()
        self._position: Position | None = None

    def add(self, news: News) -> None:
        """Note news, together with what was not told yet."""
        self._position = news.position
        self._topics = self._topics | news.topics if ANYTHING not in self._topics else {ANYTHING}
        self.woken.set()

    def take(self) -> News | None:
        """Return what is to be told, once; None is nothing."""
        self.woken.clear()
        position, topics = self._position, frozenset(self._topics)
        self._position, self._topics = None, set()
        return None if position is None else News(position, topics)

    def end(self) -> None:
        """Let it end."""
        self.is_ended = True
        self.woken.set()


class Watcher:
    """The streams of one process. It belongs to one event loop."""

    def __init__(self, runner: Runner, per_administrator: int = PER_ADMINISTRATOR) -> None:
        self._runner = runner
        self._per_administrator = per_administrator
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
        """End all streams and take no more: the process is about to end."""
        self._is_ended = True
        for stream in self._streams:
            stream.end()

    async def open(self, me: SignedIn, since: Position | None) -> Stream:
        """Open a stream, to be closed; it begins with what happened since a position. Raises Refused where there are too many."""
        if self._is_ended:
            raise Refused("BUSY", say("The service is shutting down. Try again."))
        if self._held[me.id] >= self._per_administrator or self.count >= self._most:
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
            # What comes after this reading is told to it by the one that watches, who has read before: at worst it is told twice.
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
                            await self._judge(now)  # before anybody is told by a role that they had
                        commit, read_at, position = last, now + _READ_EVERY, news.position
                        self._tell(news)
                    await self._judge(now)
                    has_failed = False
                except Refused:  # it is read again
                    commit = None
                except Exception:
                    if not has_failed:
                        log.exception("Looking for news has failed.")
                    commit, has_failed = None, True
        finally:
            self._watching = None

    def _tell(self, news: News) -> None:
        """Tell each stream of news, if there is any that its administrator's role may read of."""
        if news.topics:
            for stream in self._streams:
                if not stream.is_ended and (seen := limit_news(news, stream.me.actor)).topics:
                    stream.add(seen)

    async def _judge(self, now: float) -> None:
        """End the streams of sessions that have ended or have another role now, if it is time to look. Raises Refused."""
        if now < self._judge_at or not self._streams:
            return
        live = await self._runner.read(find_live_sessions, {stream.me.session for stream in self._streams})
        self._judge_at = now + _JUDGE_EVERY
        for stream in self._streams:
            if stream.me.session not in live or live[stream.me.session] is not stream.me.permit:
                stream.end()
