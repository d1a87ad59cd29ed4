"""Pages served for tests, and what their HTML may have."""

import socket
from contextlib import closing, contextmanager
from html.parser import HTMLParser
from http.client import HTTPConnection
from threading import Thread
from urllib.parse import urlencode

import uvicorn

#: Elements that a page may have, and attributes that would need the policy to allow more than it does.
ELEMENTS = {
    *("html", "head", "meta", "title", "link", "script", "body", "a", "header", "span", "img", "nav", "main"),
    *("footer", "h1", "h2", "h3", "h4", "p", "form", "label", "input", "button", "details", "summary", "div"),
    *("section", "ol", "ul", "li", "bdi", "time", "mark", "small", "strong", "b", "svg", "rect", "path"),
    *("circle", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "textarea", "sup", "fieldset"),
    *("legend", "figure", "figcaption", "text", "polyline", "pre", "code"),
}


def getting(port):
    """Return what sends a request to a port and returns status, headers and text."""

    def get(path, parameters=(), method="GET", **headers):
        with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            path += f"?{urlencode(parameters)}" if parameters else ""
            headers = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, headers={"accept": "text/html", **headers})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()

    return get


@contextmanager
def served(app):
    """Serve an application by a real server; yield what sends a request and returns status, headers, text."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(app, http="h11", log_level="critical", h11_max_incomplete_event_size=1 << 20)
    )
    thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield getting(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


class Elements(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    handle_startendtag = handle_starttag

    def values(self, tag, name):
        return [attributes[name] for one, attributes in self.found if one == tag and name in attributes]


def check_page(text):
    """Check that nothing of a document became markup; return the elements of the page."""
    elements = Elements(text)
    assert {tag for tag, _ in elements.found} <= ELEMENTS
    names = {name for _, attributes in elements.found for name in attributes}
    assert not {name for name in names if name.startswith("on") or name == "style"}
    addresses = [
        *elements.values("a", "href"),
        *elements.values("img", "src"),
        *elements.values("link", "href"),
    ]
    assert not [one for one in addresses if not one.startswith(("/", "#", "http://", "https://"))]
    assert elements.values("script", "src") == [
        one for one in elements.values("script", "src") if "/_static/" in one
    ]
    ids = [value for _, attributes in elements.found if (value := attributes.get("id"))]
    assert len(ids) == len(set(ids))
    assert "built-in method" not in text
    return elements
