"""A stream that feeds itself, for `make serve-demo`: messages of a forum that six labelers call ok or spam.

Each row is made from its number alone, so a restarted demo goes on where it stopped. Past rows fill the charts first.
Then two labelers change places, and new rows arrive a few times a second: the event is seen to come in.
"""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np

STREAM = "forum-messages"
CLASSES = ("ok", "spam")
LABELERS = ("judge-large", "judge-small", "judge-fast", "judge-old", "word-rules", "link-rules")
PAST_ROWS = 3_000
ROWS_A_SECOND = 12
SEED = 20

_USUAL = (0.98, 0.96, 0.95, 0.93, 0.92, 0.89)
_COVERAGE = (1.0, 1.0, 1.0, 1.0, 0.9, 0.7)
_JUDGES = 4  # the first ones: they misread the same unusual messages
_UNUSUAL = 0.08  # share of messages that look like the other class

_THINGS = ("drill", "tent", "router", "piano", "bicycle", "camera", "oven", "sofa", "printer", "kayak")
_PLACES = ("Ghent", "Lyon", "Porto", "Graz", "Turku", "Leeds", "Brno", "Malmö")
_OK = (
    "Does anybody know how to repair the {thing} without the manual?",
    "I bought a {thing} in {place} last week and I am happy with it.",
    "Thank you, the second answer solved it. My {thing} works again.",
    "Where in {place} can I rent a {thing} for a weekend?",
    "The photo does not load for me. Is it the same {thing} as in your first post?",
    "Moved from {place} in May; the {thing} survived, the shelf did not.",
)
_SPAM = (
    "CHEAP {thing}!!! 80% off only today, write to me now",
    "Earn 900 a day from home, no {thing} needed, ask me how",
    "Real followers for your {place} page, delivered in one hour",
    "You have won a {thing}. Confirm your card number to receive it.",
    "Best {thing} pills, no prescription, shipping from {place}",
)
_OK_UNUSUAL = (
    "Selling my {thing}, 40 euros, pick up in {place}. Price is final!",
    "FREE {thing}!!! My cellar has to be empty by Sunday, {place} north.",
    "Discount code for the {place} meeting is in the newsletter, use it today.",
)
_SPAM_UNUSUAL = (
    "My cousin had the same trouble with a {thing}, this little shop helped, see profile.",
    "I was sceptical too, but the {thing} from their page changed my mornings in {place}.",
    "Nice answer! I wrote a longer one about every {thing}, the address is in my name.",
)


def accuracies(row: int) -> tuple[float, ...]:
    """How often each labeler is right at this row: one judge is poor for a while, then another."""
    now = list(_USUAL)
    if row >= PAST_ROWS // 2:
        poor = 1 + (row // PAST_ROWS) % 2  # judge-small, judge-fast, and so on, in turn
        now[poor] = 0.65
    return tuple(now)


def make_row(row: int, at: datetime) -> dict[str, Any]:
    """A row of votes with its message, in the form that the service takes."""
    rng = np.random.default_rng([SEED, row])
    truth = int(rng.random() < 0.35)
    unusual = rng.random() < _UNUSUAL
    texts = (_OK_UNUSUAL, _SPAM_UNUSUAL)[truth] if unusual else (_OK, _SPAM)[truth]
    text = texts[rng.integers(len(texts))].format(
        thing=_THINGS[rng.integers(len(_THINGS))], place=_PLACES[rng.integers(len(_PLACES))]
    )
    votes = {}
    for place, (name, accuracy, coverage) in enumerate(zip(LABELERS, accuracies(row), _COVERAGE, strict=True)):
        right = rng.random() < (0.35 if unusual and place < _JUDGES else accuracy)
        if rng.random() < coverage:
            votes[name] = CLASSES[truth if right else 1 - truth]
    author = f"user-{rng.integers(1, 900)}"
    data = {"text": text, "author": author, "posts before": int(rng.integers(0, 60))}
    return {"id": f"m{row}", "time": at.isoformat(timespec="seconds"), "votes": votes, "data": data}


def feed(url: str) -> None:
    """Create the stream at `url` and send it rows for ever; a server that does not answer is waited for."""
    path = f"{url}/v1/streams/{STREAM}"
    row: int | None = None
    while True:
        if row is None:
            stream = _send("PUT", path, {"classes": CLASSES})
            row = stream and stream["rows"]
            continue
        past = max(0, PAST_ROWS - row)
        rows = min(50, past) if past else ROWS_A_SECOND // 4
        now = datetime.now(timezone.utc)
        ages = [max(0, past - n) / ROWS_A_SECOND for n in range(rows)]
        batch = [make_row(row + n, now - timedelta(seconds=age)) for n, age in enumerate(ages)]
        row = None if _send("POST", f"{path}/rows", {"rows": batch}) is None else row + rows
        time.sleep(0.1 if past else rows / ROWS_A_SECOND)


def _send(method: str, url: str, body: Any = None) -> Any:
    """The server's answer, or None after a second if it cannot be reached."""
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(url, data, {"Content-Type": "application/json"}, method=method), timeout=60) as answer:
            return json.loads(answer.read())
    except HTTPError as refusal:
        refusal.close()
        if refusal.code not in (404, 503):  # the stream was deleted, or the service is busy or stopping
            raise
    except OSError:  # not up yet, or stopped
        pass
    time.sleep(1)
    return None
