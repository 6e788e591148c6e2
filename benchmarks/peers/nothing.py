"""Fetches every page and discards it: the speed of the server, which no peer can exceed."""

from __future__ import annotations

import http.client
import json
import re
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit


def main(base_url: str, _folder: Path) -> None:
    """Read the listing by its `Link` headers on one connection."""
    started = time.perf_counter()
    connection = http.client.HTTPConnection(urlsplit(base_url).netloc)
    target: str | None = "/api/v2/publications/all?per_page=50"
    while target:
        connection.request("GET", target)
        response = connection.getresponse()
        response.read()
        following = re.search(r'<http://[^/]+([^>]+)>; rel="next"', response.headers["Link"])
        target = following[1] if following else None
    records = int(response.headers["X-Total"])
    print(json.dumps({"records": records, "seconds": time.perf_counter() - started}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
