"""What has happened since a position in the logs, by topic, for pages that are kept up to date."""

from trellis.core.news.topics import (
    ANYTHING,
    News,
    Position,
    format_position,
    limit_news,
    parse_position,
    read_news,
    read_position,
)
