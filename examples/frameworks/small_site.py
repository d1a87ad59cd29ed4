"""A small site on this machine for the example of Scrapy: each article has many addresses.

The site is at 127.0.0.1 and its mirror at localhost. Articles of the site have a canonical link and a printer
version. The mirror has a header and a cookie banner of its own, and no canonical links. All links have a
session id.
"""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from zlib import crc32

from shinglefold.examples import articles

ARTICLES = {
    a["id"]: a for a in articles() if a["id"] in ("en-main-elm-1", "en-starter-feed-1", "en-fog-monday-1")
}

COOKIES = """<div id="cookies">We and our 214 partners store information on your device, such as cookies,
and read it, to show personal advertisements and content, to measure them, and to learn about audiences. You
may accept all of it, or choose in the settings what we may do, and change your mind at any time by the link
at the end of each page. Some partners ask for no consent and rely on legitimate interests, to which you may
object there. <button>Accept all</button> <button>Settings</button></div>"""


class Page(BaseHTTPRequestHandler):
    """Answers with the home page, ``/ID``, or ``/print/ID``."""

    def do_GET(self) -> None:
        """Send one page."""
        folder, _, name = self.path.partition("?")[0].strip("/").rpartition("/")
        mirrored = self.headers["Host"].startswith("localhost")
        # Another session for each page that links here.
        session = f"?sid={crc32(f'{folder}/{name}'.encode()):08x}"
        menu = "".join(f'<li><a href="/{one}{session}">{ARTICLES[one]["title"]}</a></li>' for one in ARTICLES)
        article = ARTICLES.get(name, {"title": "Home", "body": ""})
        head = f"<title>{article['title']}</title>"
        main = f"<main><h1>{article['title']}</h1><p>{article['body']}</p></main>" if name else ""
        if mirrored:
            page = f"{COOKIES}<header>The Mirror of Towns</header>{main}<ul>{menu}</ul>"
        elif folder == "print":
            page = f"{main}<footer>Printed from our site</footer>"
        else:
            head += f'<link rel="canonical" href="/{name}">'
            page = (
                f'<ul>{menu}</ul>{main}<a href="/print/{name}{session}">Print</a>'
                if name
                else f"<ul>{menu}</ul>"
            )
        sent = f"<!DOCTYPE html><html><head>{head}</head><body>{page}</body></html>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def start() -> list[str]:
    """Serve the site until the program ends; return the home pages of the site and its mirror."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    Thread(target=server.serve_forever, daemon=True).start()
    return [f"http://{host}:{server.server_port}/" for host in ("127.0.0.1", "localhost")]
