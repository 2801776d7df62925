"""A viewer in a thread, and a browser that says of itself what it is told to."""

import http.client
import json
import threading
from urllib.parse import urlencode

from patience import PATIENCE

import epsgauge as eg
from epsgauge.reporting.viewer.server import Viewer


class Answer:
    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.cookies = response.headers.get_all("set-cookie") or []
        self.text = response.read().decode()

    @property
    def json(self):
        return json.loads(self.text)


class Client:
    """A browser that says of itself what it is told to."""

    def __init__(self, port):
        self.port, self.cookie = port, None

    def send(self, method, path, headers=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        sent = {**({"Cookie": self.cookie} if self.cookie else {}), **(headers or {})}
        try:
            connection.request(method, path, body=body, headers=sent)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, headers=None, **query):
        return self.send("GET", f"{path}?{urlencode(query, doseq=True)}" if query else path, headers)

    def post(self, path, body=b"", **query):
        return self.send("POST", f"{path}?{urlencode(query, doseq=True)}", {"Sec-Fetch-Site": "same-origin"}, body)

    def enter(self, address):
        answer = self.send("GET", address.partition(str(self.port))[2])
        self.cookie = answer.cookies[0].partition(";")[0]
        return answer


class Served:
    """A viewer in a thread, with a client that has its cookie."""

    def __init__(self, folder):
        self.announced = []
        self.viewer = Viewer(folder, announce=self.announced.append)
        self.thread = threading.Thread(target=self.viewer.serve, daemon=True)
        self.thread.start()
        self.address = self.viewer.address
        self.client = Client(self.viewer.port)

    def __enter__(self):
        self.client.enter(self.address)
        return self

    def __exit__(self, *error):
        self.viewer.stop()
        self.thread.join(10)


def listed(client, **query):
    """What the list says when nothing is pending any more."""
    while True:
        found = client.get("/api/list", **query).json
        if not found["pending"]:
            return found


def looks(folder):
    return [look["kind"] for look in eg.Run.open(folder).looks]
