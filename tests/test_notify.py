"""The log, the events file, and the webhook: a server that works, fails, is slow, redirects, or is not there."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from driftvote import DriftvoteError
from driftvote.live import notify
from driftvote.live.notify import EventFile, Log, Webhook


class Receiver:
    """A server on this machine that answers as it is told and remembers what came."""

    def __init__(self, answer: Callable[[int], int]) -> None:
        self.got: list[tuple[dict[str, str], Any]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((dict(self.headers) | {"path": self.path}, json.loads(body)))
                code = answer(len(receiver.got))
                self.send_response(code)
                if code // 100 == 3:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?key=secret"


@contextmanager
def receiving(answer: Callable[[int], int]) -> Iterator[Receiver]:
    receiver = Receiver(answer)
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        receiver.server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def test_a_flood_of_line_errors_is_counted_not_shown(capsys, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(notify.time, "monotonic", lambda: clock[0])
    log = Log(quiet=True)
    for number in range(notify.LINE_ERRORS_PER_SECOND + 5):
        log.line_error(f"line {number}")
    clock[0] = 1.0
    log.line_error("another")
    log.info("not logged if quiet")
    said = capsys.readouterr().err.splitlines()
    assert len(said) == notify.LINE_ERRORS_PER_SECOND + 1
    assert said[-1] == "driftvote: another (and 5 more before it)"


def test_the_events_file_holds_each_event_of_a_stream_once(tmp_path):
    path = tmp_path / "events.jsonl"
    first = {"type": "event", "stream": "s", "number": 1, "row": 70}
    path.write_text(json.dumps(first) + "\nnot ours\n" + '{"type": "event", "str')  # a crash in the middle of a line
    file = EventFile(path, "s")
    file.add(first)
    file.add({**first, "number": 2, "row": 90})
    file.close()
    other = EventFile(path, "t")
    other.add({**first, "stream": "t"})
    other.close()
    lines = path.read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines if line.endswith("}")] == [1, 2, 1]
    assert len(lines) == 5


def test_messages_arrive_in_order_with_what_the_receiver_needs():
    said: list[str] = []
    with receiving(lambda _: 204) as receiver:
        hook = Webhook(receiver.url.replace("//", "//user:p%40ss@"), said.append)
        for number in range(3):
            hook.post({"text": "Grüße", "number": number})
        hook.close()
    assert [body["number"] for _, body in receiver.got] == [0, 1, 2]
    headers = receiver.got[0][0]
    assert headers["path"] == "/hook?key=secret"
    assert headers["Content-Type"] == "application/json"
    assert headers["User-Agent"].startswith("driftvote/")
    assert headers["Authorization"] == "Basic dXNlcjpwQHNz"
    assert (hook.posts, said) == ({"delivered": 3, "given_up": 0, "dropped": 0}, [])


def test_failures_are_tried_again_and_given_up_in_the_end():
    said: list[str] = []
    with receiving(lambda count: 503 if count <= 2 else 200) as receiver:
        hook = Webhook(receiver.url, said.append, token="t", first_pause=0.01)
        hook.post({"text": "one"})
        hook.close()
    assert len(receiver.got) == 3
    assert receiver.got[0][0]["Authorization"] == "Bearer t"
    assert hook.posts["delivered"] == 1
    with receiving(lambda _: 500) as receiver:
        hook = Webhook(receiver.url, said.append, first_pause=0.01)
        hook.post({"text": "two"})
        hook.close()
    assert len(receiver.got) == notify.ATTEMPTS
    assert hook.posts["given_up"] == 1
    assert "it answered 500 Internal Server Error (6 attempts); this message is given up: two" in said[-1]
    assert "secret" not in said[-1], "a webhook's path is its password"


@pytest.mark.parametrize("code", [404, 302])
def test_what_another_attempt_cannot_change_is_given_up_at_once(code):
    said: list[str] = []
    with receiving(lambda _: code) as receiver:
        hook = Webhook(receiver.url, said.append)
        hook.post({"text": "x"})
        hook.close()
    assert len(receiver.got) == 1
    assert f"it answered {code} " in said[0]


def test_a_slow_server_times_out_and_a_dead_one_is_given_up_while_nobody_waits():
    said: list[str] = []
    with receiving(lambda _: time.sleep(0.5) or 200) as receiver:
        hook = Webhook(receiver.url, said.append, first_pause=0.01, timeout=0.05)
        start = time.perf_counter()
        hook.post({"text": "slow"})
        assert time.perf_counter() - start < 0.05, "handed over, not waited for"
        hook.close()
    assert "it cannot be reached (timed out)" in said[0] or "did not answer properly (timed out)" in said[0]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        hook = Webhook(f"http://127.0.0.1:{taken.getsockname()[1]}/", said.append, first_pause=0.01)
        hook.post({"text": "dead"})
        hook.close()
    assert "it cannot be reached (" in said[-1]
    assert hook.posts == {"delivered": 0, "given_up": 1, "dropped": 0}


def test_the_end_waits_only_so_long_and_the_queue_has_an_end():
    said: list[str] = []
    with receiving(lambda _: time.sleep(3) or 200) as receiver:
        hook = Webhook(receiver.url, said.append)
        for number in range(notify.QUEUE_SIZE + 5):
            hook.post({"text": "x", "number": number})
        start = time.perf_counter()
        hook.close(0.2)
        assert time.perf_counter() - start < 2
        assert hook.posts["dropped"] in (4, 5)
    assert said[0].endswith(f": {notify.QUEUE_SIZE} messages are waiting; further ones are dropped")
    assert said[-1].endswith("messages were not delivered before the end")


def test_a_reply_that_trickles_in_is_not_waited_for():
    delivered = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
                while not delivered.wait(0.05):  # a byte now and then, for as long as it takes
                    connection.sendall(b".")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        hook = Webhook(f"http://127.0.0.1:{server.getsockname()[1]}/", print)
        hook.post({"text": "hello"})
        until = time.monotonic() + 20
        while not hook.posts["delivered"] and time.monotonic() < until:
            time.sleep(0.02)
        assert hook.posts["delivered"] == 1
        delivered.set()
        thread.join()
        hook.close()


@pytest.mark.parametrize(
    ("begin", "more"),
    [(b"", b"."), (b"HTTP/1.1 404 No\r\nX: ", b"."), (b"", b"HTTP/1.1 100 Continue\r\n\r\n")],
    ids=["status", "header", "continue"],
)
def test_a_reply_whose_head_trickles_in_is_hung_up_on(begin, more, monkeypatch):
    monkeypatch.setattr(notify, "ATTEMPTS", 1)
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        given_up = threading.Event()

        def answer() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):  # the other end hangs up
                connection.recv(1 << 16)
                connection.sendall(begin)
                while not given_up.wait(0.05):
                    connection.sendall(more)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        hook = Webhook(f"http://127.0.0.1:{server.getsockname()[1]}/", said.append, timeout=0.5)
        hook.post({"text": "hello"})
        until = time.monotonic() + 10
        while not hook.posts["given_up"] and time.monotonic() < until:
            time.sleep(0.02)
        given_up.set()
        thread.join()
        hook.close()
    assert hook.posts == {"delivered": 0, "given_up": 1, "dropped": 0}
    assert time.monotonic() < until
    assert len(said) == 1


def test_a_reply_that_is_no_http_is_a_failure():
    said: list[str] = []
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def answer() -> None:
            for _ in range(notify.ATTEMPTS):
                talk, _ = server.accept()
                with talk:
                    talk.recv(1 << 16)
                    talk.sendall(b"what?\r\n\r\n")

        server.settimeout(60)
        thread = threading.Thread(target=answer)
        thread.start()
        hook = Webhook(f"http://127.0.0.1:{server.getsockname()[1]}/", said.append, first_pause=0.001)
        hook.post({"text": "x"})
        hook.close()
        thread.join()
    assert hook.posts["given_up"] == 1


@pytest.mark.parametrize(
    "url", ["ftp://x/y", "file:///etc/passwd", "https://", "example.org/hook", "http://x:99999/", "http://a b/"]
)
def test_only_http_and_https(url):
    with pytest.raises(DriftvoteError, match="--webhook: "):
        Webhook(url, print)
