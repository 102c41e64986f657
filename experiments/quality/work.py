"""One model on one stream: everything that is measured there, as plain numbers."""

from __future__ import annotations

import ast
import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import driftvote
from driftvote.kernels.layout import Floats, Ints
from driftvote.models import LabelModel, MajorityLabelModel
from experiments.quality import measures
from experiments.quality.measures import Numbers
from experiments.quality.models import MODELS, TRUE_WEIGHTS
from experiments.quality.streams import Measured, Spec, load
from experiments.runs import Run

# Parts of the package that change no result.
_ASIDE = ("__main__.py", "cli", "files", "live", "report", "spark")
_BESIDE = ("measures.py", "streams.py", "verified.py", "work.py")


@dataclass(frozen=True)
class QualityRun(Run):
    """Kept until the model's settings, the stream or the code behind them change."""

    @property
    def fingerprint(self) -> str:
        # By the settings and not by the name: a model that was renamed is not run again.
        told = {key: value for key, value in self.arguments.items() if key != "model"}
        return hashlib.sha256(json.dumps([told, _code_digest()], sort_keys=True).encode()).hexdigest()


def run_of(data: Path, spec: Spec, model: str, settings: dict[str, Any], seed: int, limit: int | None) -> QualityRun:
    """The run of a model with these settings; its name holds them, so that models with the same settings share it."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
    rows = "" if limit is None else f"-{limit}"
    name = f"{spec.group}-{spec.name}-{spec.seed}{rows}-{digest}-{seed}"
    arguments: dict[str, Any] = {"data": str(data), **{f"stream_{key}": value for key, value in asdict(spec).items()}}
    arguments |= {"model": model, "settings": settings, "seed": seed, "limit": limit}
    return QualityRun("quality.work", name, arguments)


def run(
    data: str,
    stream_name: str,
    stream_group: str,
    stream_seed: int,
    model: str,
    settings: Any,
    seed: int,
    limit: int | None,
) -> Numbers:
    """Called by the name of this module, in whatever process."""
    stream = loaded(data, Spec(stream_name, stream_group, stream_seed)).first(limit)
    if model == TRUE_WEIGHTS:
        assert stream.accuracies is not None
        codes, proba = measures.true_weight_vote(stream.votes, stream.accuracies, stream.n_classes)
        return measured(stream, codes, proba)
    return measured_model(stream, reseeded(MODELS[model](stream.n_classes), seed))


def throws_dice(model: LabelModel) -> bool:
    """Whether its labels depend on draws that are not averaged out: those of ties are."""
    return model.abstentions == "random"


def reseeded(model: LabelModel, seed: int) -> LabelModel:
    """The same model with other draws, if it makes any."""
    return type(model)(**(model.get_params() | {"seed": seed})) if throws_dice(model) else model


@lru_cache(maxsize=2)
def loaded(data: str, spec: Spec) -> Measured:
    """Runs on one stream follow each other, so the last ones are kept."""
    return load(data, spec)


def measured_model(stream: Measured, model: LabelModel) -> Numbers:
    """What a fresh model makes of a stream."""
    out = model.label_stream(stream.votes)
    # A majority vote estimates nothing, so there is nothing to be wrong about.
    estimates = None if isinstance(model, MajorityLabelModel) else out.accuracies
    numbers = measured(stream, out.codes, out.proba, estimates, model.tie_break_policy == "random")
    numbers["window"] = float(np.median(out.windows))
    return numbers


def measured(
    stream: Measured, codes: Ints, proba: Floats, estimates: Floats | None = None, drawn: bool = False
) -> Numbers:
    """Accuracies and differences in per cent; see `measures` for each."""
    parts = measures.shares(codes, proba, drawn)
    right = measures.credits_of(parts, stream.truth)
    plain = measures.credits_of(measures.majority_shares(stream.votes, stream.n_classes), stream.truth)
    gain, gain_se = measures.mean_by_blocks(right - plain)
    curve = measures.reliability(proba, right)
    top = proba.max(axis=1)
    error = None
    if stream.accuracies is not None and estimates is not None:
        error = float(np.abs(estimates - stream.accuracies).mean())
    return {
        "rows": len(right),
        "accuracy": 100 * float(right.mean()),
        "f1": 100 * measures.macro_f1(parts, stream.truth),
        "log_loss": measures.log_loss(proba, stream.truth),
        "calibration": measures.calibration_error(curve),
        "auroc": measures.auroc(top, right),
        "review": measures.found_by_review(top, right),
        "gain": 100 * gain,
        "gain_se": 100 * gain_se,
        "accuracy_error": error,
        "against_unanimous": _against_unanimous(stream, codes),
        "curve": curve,
    }


def _said_by_all(stream: Measured) -> Ints:
    """The class that everybody who voted named, -1 where they differ or nobody voted."""
    votes = stream.votes.astype(np.int64)
    highest = votes.max(axis=1)
    lowest = np.where(votes < 0, highest[:, None], votes).min(axis=1)
    return np.where(highest == lowest, highest, -1)


def _against_unanimous(stream: Measured, codes: Ints) -> int:
    said = _said_by_all(stream)
    return int(((said >= 0) & (codes != said)).sum())


def unanimity(stream: Measured) -> Numbers:
    """Per cent of the rows that are unanimous, and that are unanimous and wrong: no label can be right there."""
    said = _said_by_all(stream)
    wrong = (said >= 0) & (said != stream.truth)
    return {"unanimous": 100 * float((said >= 0).mean()), "unanimous_wrong": 100 * float(wrong.mean())}


@cache
def _code_digest() -> str:
    """One hash of the code that results depend on; comments and docstrings do not count."""
    root = Path(driftvote.__file__).parent
    here = Path(__file__).parent
    files = [path for path in sorted(root.rglob("*.py")) if path.relative_to(root).parts[0] not in _ASIDE]
    digest = hashlib.sha256()
    for path in [*files, *(here / name for name in _BESIDE)]:
        digest.update(ast.dump(_without_docstrings(ast.parse(path.read_text(encoding="utf-8")))).encode())
    return digest.hexdigest()


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return tree
