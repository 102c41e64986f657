"""From the options of `watch` to a watched stream: model and state, outlets, and the summary at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftvote.cli.options import listed
from driftvote.cli.places import check_places
from driftvote.cli.saved import read_saved, refuse_other_settings
from driftvote.cli.which_model import make_model
from driftvote.errors import DriftvoteError
from driftvote.files.found_classes import declared_format, shown_classes
from driftvote.live.announcing import EventFile, Voice
from driftvote.live.answers import Answers
from driftvote.live.figures import look_at
from driftvote.live.keeping import Keeper, Place, Seen
from driftvote.live.lines import LineSource, stopping
from driftvote.live.loop import Habits, Outlets, Watch
from driftvote.live.metrics import Served, check_extra
from driftvote.live.reading import LATE, UNKNOWN, LineReader
from driftvote.live.warming import warm_up
from driftvote.live.webhook import Webhook
from driftvote.models import LabelModel
from driftvote.votes import VoteFormat


@dataclass(frozen=True)
class Watched:
    """What `driftvote watch` was asked for."""

    answers: Answers
    habits: Habits
    votes: str | None = None
    n_classes: int | None = None
    classes: str | None = None
    abstain: str | None = None
    labelers: str | None = None
    unknown: str = "refuse"
    model: str = "adaptive"
    settings: tuple[str, ...] = ()
    state: Path | None = None
    save_every: float = 10.0
    save_lines: int | None = None
    skip_seen: bool = False
    events: Path | None = None
    webhook: str | None = None
    webhook_token: str | None = None
    metrics: Path | None = None
    metrics_every: float = 10.0
    metrics_port: int | None = None
    metrics_address: str = "127.0.0.1"
    quiet: bool = False


def run(wanted: Watched) -> dict[str, Any]:
    """Watch standard input to its end, or until a signal comes; the summary."""
    _check(wanted)
    model, place = _begun(wanted)
    voice = Voice(wanted.quiet)
    reader = LineReader(model._form, listed(wanted.labelers), wanted.unknown)
    seen = Seen(place, wanted.skip_seen)
    before = place.counts.lines
    with stopping() as stop, _outlets(wanted, voice, model, place) as outlets:
        warm_up(model, voice.say)
        if before:
            after = "" if place.last_id is None else f", id {place.last_id!r}"
            voice.say(f"going on after line {before:,}{after}, row {model.n_rows - 1:,}")
        if wanted.metrics is not None and wanted.metrics.suffix != ".prom":
            voice.say(f"note: the textfile collector reads files that end in .prom, not {wanted.metrics.name}")
        if sys.stdin is not None and sys.stdin.isatty():
            voice.say("reading votes from this terminal, a line each; Ctrl-D ends")
        keeper = Keeper(wanted.state, wanted.save_every, wanted.save_lines)
        watch = Watch(model, reader, wanted.answers, place, keeper, outlets, wanted.habits, seen)
        watch.run(LineSource(_descriptor(sys.stdin), stop), stop)
    return _summary(watch, before, stop.signal, wanted)


def _descriptor(stream: Any) -> int:
    if stream is None:
        raise DriftvoteError("standard input is closed; pipe lines of votes into it")
    return int(stream.fileno())


def _check(wanted: Watched) -> None:
    """Everything that can be refused before the first line."""
    files = {"--events": wanted.events, "--metrics": wanted.metrics, "--state": wanted.state}
    for option, path in files.items():
        if str(path) == "-":
            raise DriftvoteError(f"{option} -: standard output is for the answers; name a file")
    check_places("-", {"--events": wanted.events, "--metrics": wanted.metrics}, True, wanted.state)
    if wanted.unknown not in UNKNOWN:
        raise DriftvoteError(f"--unknown {wanted.unknown}: choose {' or '.join(UNKNOWN)}")
    if wanted.habits.late not in LATE:
        raise DriftvoteError(f"--late {wanted.habits.late}: choose {' or '.join(LATE)}")
    if wanted.votes == "signed" and wanted.abstain is not None:
        raise DriftvoteError("--votes signed has its own value for no vote, 0; leave --abstain out")
    if wanted.skip_seen and wanted.state is None:
        raise DriftvoteError("--skip-seen needs --state, which knows the lines that were taken")
    if wanted.metrics_port is not None:
        check_extra()


def _begun(wanted: Watched) -> tuple[LabelModel, Place]:
    """The model of the state, or a new one, and where in the stream it is."""
    classes = None if wanted.classes is None else listed(wanted.classes)
    if classes is None and wanted.abstain is not None:
        raise DriftvoteError("--abstain goes with --classes; name the classes too")
    declared = declared_format(wanted.votes, wanted.n_classes, classes, wanted.abstain)
    if wanted.state is None or not wanted.state.exists():
        if declared is None:
            raise DriftvoteError(
                "a stream cannot be looked through for its classes; declare them, such as --classes safe,unsafe, or say"
                " --votes snorkel (0..K-1, -1 is no vote)"
            )
        return make_model(wanted.model, declared, wanted.settings), Place()
    saved = read_saved(wanted.state, many=False)
    model = saved.models[None]
    if declared is not None:
        _refuse_other_classes(model._form, declared, wanted.state)
    if wanted.model != "adaptive" or wanted.settings:
        refuse_other_settings(saved, make_model(wanted.model, model._form, wanted.settings), wanted.model, wanted.state)
    return model, Place.in_file(wanted.state)


def _refuse_other_classes(kept: VoteFormat, declared: VoteFormat, state: Path) -> None:
    if (declared.classes, declared.abstain) != (kept.classes, kept.abstain):
        raise DriftvoteError(
            f"{state}: the state reads classes {shown_classes(kept)}, the options declare {shown_classes(declared)};"
            " leave them out, or begin a new state"
        )


@contextmanager
def _outlets(wanted: Watched, voice: Voice, model: LabelModel, place: Place) -> Iterator[Outlets]:
    """Everything that must be closed at the end, in whatever way it comes."""
    with ExitStack() as stack:
        outlets = Outlets(_descriptor(sys.stdout), voice, metrics=wanted.metrics, metrics_every=wanted.metrics_every)
        if wanted.events is not None:
            outlets.events = EventFile(wanted.events, place.stream)
            stack.callback(outlets.events.close)
        if wanted.metrics_port is not None:
            found = look_at(model, place.counts)
            outlets.served = Served(wanted.metrics_port, wanted.metrics_address, found)
            stack.callback(outlets.served.close)
            voice.say(f"metrics are served at http://{wanted.metrics_address}:{outlets.served.port}/metrics")
        if wanted.webhook is not None:
            outlets.webhook = Webhook(wanted.webhook, voice.warn, wanted.webhook_token)
            stack.callback(outlets.webhook.close)
        yield outlets


def _summary(watch: Watch, before: int, signal: int | None, wanted: Watched) -> dict[str, Any]:
    """What was seen and said, for machines."""
    model, counts = watch.model, watch.counts
    posts = {} if watch.outlets.webhook is None else watch.outlets.webhook.posts
    found = look_at(model, counts, posts)
    outputs = {"--state": wanted.state, "--events": wanted.events, "--metrics": wanted.metrics}
    return {
        "lines_now": counts.lines - before,
        "ended_by": "end of input" if signal is None else f"signal {signal}",
        "rows": found.rows,
        **counts.as_dict(),
        "labels": found.labels,
        "events": found.events,
        "window": found.window,
        "labelers": {labeler.name: labeler.accuracy for labeler in found.labelers},
        "webhook": posts,
        "outputs": {option: str(path) for option, path in outputs.items() if path is not None},
    }


def shown_summary(found: dict[str, Any]) -> list[str]:
    """The same for people."""
    rows = max(1, found["rows"])
    taken = f"{found['lines_now']:,} lines"
    total = "" if found["lines_now"] == found["lines"] else f"; {found['lines']:,} lines in all"
    odd = [f"{found[name + '_lines']:,} {name}" for name in ("malformed", "late", "blank") if found[name + "_lines"]]
    shares = [f"{name} {count / rows:.1%}" for name, count in list(found["labels"].items())[:8]]
    if found["tied_rows"]:
        shares.append(f"tied {found['tied_rows'] / rows:.1%}")
    n_events = sum(found["events"].values())
    last = f", the last at row {found['last_event_row']:,}" if n_events else ""
    order = sorted(found["labelers"].items(), key=lambda pair: -pair[1])
    shown = ", ".join(f"{name} {value:.2f}" for name, value in order[:8])
    more = f" and {len(order) - 8} more" if len(order) > 8 else ""
    said = [f"watched  {', '.join([taken, *odd])}{total}"]
    if found["rows"]:
        review = found["doubtful_rows"]
        said += [
            f"labels   {', '.join(shares)}; {review:,} of {rows:,} rows ({review / rows:.1%}) need review",
            f"drift    {n_events} event{'' if n_events == 1 else 's'}{last}",
            f"now      window of {found['window']:,} rows; accuracy {shown}{more}",
        ]
    said += [f"wrote    {path}" for path in found["outputs"].values()]
    return [*said, f"ended    by {found['ended_by']}"]
