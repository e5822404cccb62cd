"""Reading a live community over its REST API."""

from trellis.invision.live.address import check_url, find_private_address
from trellis.invision.live.client import Client
from trellis.invision.live.reader import Reader
