"""Hostile requests against the service: `make serve-fuzz`.

Methods, paths, bodies, headers, names, sizes, raw bytes and slow clients. No answer may be a 500 or hold a traceback,
every error is a sentence with a code, the service still answers, and a stream beside it labels as the library does.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import http.client
import json
import random
import socket
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

from driftvote import AdaptiveLabelModel

from serve_for_tests import CLASSES, Server, make_rows

LIMITS = ("--limit", "body_bytes=200000", "--limit", "rows=500", "--limit", "read_seconds=2", "--limit", "streams=60")
NAMES = ["fuzz", "good", "", " ", "..", "../../etc/passwd", "%00", "a\x00b", "a/b", "é" * 60, "x" * 5000, "\u202e", "‮", "row:1", "#", "?", "💥", "-"]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 1.5, -0.0, 1e308, float("nan"), float("inf"), 10**30, -(10**30), "", "safe", "unsafe",
    "SAFE", " safe ", "0", "1e999", "null", "x" * 3000, "\ud800", "\x00", "é", [], {}, [1], {"a": 1}, [[[[]]]], {"": ""},
]  # fmt: skip


def pick(rng: random.Random, depth: int = 0) -> Any:
    """Any value that JSON can write, and some that it cannot."""
    kind = rng.random()
    if depth < 3 and kind < 0.15:
        return [pick(rng, depth + 1) for _ in range(rng.randint(0, 4))]
    if depth < 3 and kind < 0.35:
        return {str(pick(rng, 3))[:20]: pick(rng, depth + 1) for _ in range(rng.randint(0, 4))}
    return copy.deepcopy(rng.choice(VALUES))  # what is made of it is changed


def rows_body(rng: random.Random) -> Any:
    """A body of rows that is nearly right."""
    body: Any = {"rows": make_rows(rng.choice([1, 3, 20]), seed=rng.randint(0, 9), prefix=f"f{rng.randint(0, 5)}-")}
    for _ in range(rng.randint(0, 3)):
        row: Any = rng.choice(body["rows"])
        what = rng.randint(0, 6)
        if what == 0:
            row[rng.choice(["id", "time", "votes", "data"])] = pick(rng)
        elif what == 1 and isinstance(row.get("votes"), dict):
            row["votes"][rng.choice(["a", "b", "zz", "", "x" * 300, "\x1b[31m"])] = pick(rng)
        elif what == 2:
            row[rng.choice(["Id", "vote", "extra", ""])] = pick(rng)
        elif what == 3 and isinstance(row.get("votes"), dict):
            row["votes"] = {f"n{i}": "safe" for i in range(rng.choice([0, 1, 2, 199, 201, 1000]))}
        elif what == 4:
            body["rows"] = pick(rng)
            break
        elif what == 5:
            body["rows"].append(rng.choice(body["rows"]))
        else:
            row.pop(rng.choice(["id", "votes", "time"]), None)
    return body


def settings_body(rng: random.Random) -> Any:
    body: dict[str, Any] = {"classes": CLASSES}
    names = ["classes", "n_classes", "votes", "abstain", "labelers", "estimator", "windows", "bound", "beta", "delta", "refresh",
             "class_balance", "clip", "abstentions", "tie_break_policy", "seed", "false_event_rate", "keep_rows", "keep_days",
             "review_below", "groups", "n_jobs", "on_event", "nonsense"]  # fmt: skip
    good = {"estimator": "majority", "windows": [4, 8], "votes": "snorkel", "n_classes": 3, "labelers": ["a", "b", "c"], "seed": 7, "tie_break_policy": "random"}  # fmt: skip
    for name in rng.sample(names, rng.randint(0, 3)):
        body[name] = good[name] if name in good and rng.random() < 0.4 else pick(rng)
    return body


def damage(rng: random.Random, data: bytes) -> bytes:
    """Bytes with a few of them changed, lost or repeated."""
    found = bytearray(data)
    for _ in range(rng.randint(0, 3) if rng.random() < 0.4 else 0):
        if not found:
            break
        place = rng.randrange(len(found))
        what = rng.randint(0, 3)
        if what == 0:
            found[place] = rng.randrange(256)
        elif what == 1:
            del found[place : place + rng.randint(1, 20)]
        elif what == 2:
            found[place:place] = found[place : place + rng.randint(1, 50)]
        else:
            found[place:place] = rng.choice(
                [b"[" * 5000, b'{"a":' * 3000, b"9" * 6000, b"\xff\xfe", b"\\ud800", b"NaN", b"\x00"]
            )
    return bytes(found)


def make_request(rng: random.Random) -> tuple[str, str, bytes | None, dict[str, str]]:
    """A method, a path, a body and headers."""
    name = rng.choice(["fuzz", f"p{rng.randint(0, 45)}"])
    if rng.random() < 0.15:
        name = quote(rng.choice(NAMES), safe=rng.choice(["", "/%"]))
    paths = ["rows", "predict", "questions", "feedback", "events", "timeline", "labels.csv", "labels.parquet", "labels.exe",
             "state", f"rows/{quote(rng.choice(['f0-1', '../x', '%', 'a/b/c', 'é']))}", "feedback/f0-1", "", "nothing"]  # fmt: skip
    tail = rng.choice(paths + ["rows"] * 8 + ["predict"] * 3 + ["feedback"] * 3 + [""] * 6)
    path = rng.choice([f"/v1/streams/{name}/{tail}".rstrip("/")] * 40 + ["/", "/page/../app.py", "/page/%2e%2e/app.py", "/v1/session", "/metrics", "/readyz", "/docs", "/openapi.json", "/v1", "/v1/streams", f"/{name}", "//", "/v1/streams/%ff"])  # fmt: skip
    if rng.random() < 0.3:
        path += f"?{rng.choice(['n', 'after', 'points', 'confirm', 'safe', 'x'])}={quote(str(rng.choice(VALUES))[:300].encode('utf-8', 'replace'))}"
    usual = {"rows": "POST", "predict": "POST", "feedback": "POST", "": "PUT"}.get(tail, "GET")
    method = (
        usual
        if rng.random() < 0.93
        else rng.choice(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "X" * 20])
    )
    content: Any = pick(rng)
    if rng.random() < 0.85:
        content = {"rows": rows_body, "predict": rows_body, "": settings_body}.get(tail, lambda r: {"answers": [{"id": r.choice(["f0-0", "f1-1", 3, None]), "class": pick(r)}]})(rng)  # fmt: skip
    body: bytes | None = json.dumps(content).encode()
    headers = {
        "Content-Type": rng.choice(["application/json"] * 6 + ["application/x-ndjson", "text/plain", "", "a" * 500])
    }
    if "ndjson" in headers["Content-Type"] and isinstance(content, dict) and isinstance(content.get("rows"), list):
        body = b"\n".join(json.dumps(row).encode() for row in content["rows"])
    if rng.random() < 0.25:
        odd = {"Host": "evil.example", "Origin": "http://evil.example", "Authorization": "Bearer x", "Cookie": 'driftvote_token="\\377"; ;;=,',
               "X-CSRF-Token": "é", "Content-Encoding": "gzip", "Last-Event-ID": "-1", "Transfer-Encoding": "gzip", "Content-Length": "-5",
               "Expect": "100-continue", "Range": "bytes=0-", "Sec-Fetch-Site": "cross-site", "Upgrade": "websocket", "Connection": "upgrade"}  # fmt: skip
        key = rng.choice(list(odd))
        headers[key] = odd[key]
    if method in ("GET", "HEAD") and rng.random() < 0.8:
        body = None
    return method, path, None if body is None else damage(rng, body), headers


def send_raw(rng: random.Random, port: int) -> None:
    """Bytes that are not a request, half a request, or one that never ends."""
    head = b"POST /v1/streams/fuzz/rows HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    texts = [rng.randbytes(300), b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000, head, head + b"Content-Length: 100\r\n\r\n{",
             head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", head + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}", b"\r\n" * 1000,
             head + b"Content-Length: 99999999999999999999\r\n\r\n", b"GET http://evil/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"]  # fmt: skip
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as raw:
        raw.sendall(rng.choice(texts))
        if rng.random() < 0.5:
            raw.settimeout(0.05)
            answer = raw.recv(1000)
            assert b" 500 " not in answer[:15], answer


def check_answer(status: int, kind: str, text: bytes, shown: str) -> None:
    assert status < 500 or status in (501, 503), f"{status} for {shown}: {text[:300]!r}"
    assert b"Traceback" not in text, shown
    if status >= 400 and kind.startswith("application/json") and text:
        error = json.loads(text)["error"]
        assert error["code"], shown
        assert len(error["message"]) > 10, shown


def fuzz(server: Server, n: int, seed: int) -> Counter[int]:
    """Send so many hostile requests; how often each status was answered comes back."""
    rng, counts = random.Random(seed), Counter[int]()
    server.create("fuzz")
    good, rows = server.create("good"), make_rows(n // 5 + 1, seed=99, prefix="g")
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(5)]
    for one in slow:
        one.sendall(b"POST /v1/streams/fuzz/rows HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le")
    answers = []
    for number in range(n):
        if number % 5 == 0:
            answers += server.label(good, [rows[number // 5]])["rows"]
        if rng.random() < 0.1:
            send_raw(rng, server.port)
            continue
        method, path, body, headers = make_request(rng)
        if method not in ("GET", "HEAD") and path.startswith("/v1/streams/good"):
            continue  # a request that happens to be right would be learned from
        shown = f"{method} {path[:200]} {headers} {body[:2000] if body else body!r}"
        connection = server.connect(timeout=30)
        try:
            connection.request(method, path, body, {key: value.encode() for key, value in headers.items()})
            answer = connection.getresponse()
            text = answer.read(1 << 20)
        except (ValueError, OSError, http.client.HTTPException):  # our side would not send it, or the connection ended
            counts[0] += 1
            continue
        finally:
            connection.close()
        counts[answer.status] += 1
        check_answer(answer.status, answer.getheader("content-type", ""), text, shown)
    out = AdaptiveLabelModel(classes=CLASSES).label_stream([row["votes"] for row in rows[: len(answers)]])
    assert [one["probability"] for one in answers] == out.probability.tolist(), "a stream beside it was harmed"
    for one in slow:
        one.settimeout(10)
        with contextlib.suppress(ConnectionError):
            assert one.recv(100) == b"", "a client that stopped in its headers is still waited for"
        one.close()
    assert server.call("GET", "/healthz")[0] == 200
    errors = [line for line in server.read_log().splitlines() if '"event": "error"' in line or "Traceback" in line]
    assert not errors, errors[:2]
    assert server.process.poll() is None
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="driftvote-serve-fuzz-") as folder,
        Server(Path(folder) / "data", *LIMITS) as server,
    ):
        counts = fuzz(server, options.requests, options.seed)
        assert server.stop() == 0, server.read_log()[-2000:]
    print(", ".join(f"{count} x {status or 'no answer'}" for status, count in sorted(counts.items())))
    print(f"seed {options.seed}: {options.requests} hostile requests, no 500, no traceback, other streams unharmed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
