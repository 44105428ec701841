"""Measures what every ranking rule adds, and whether it helps on test sets that its value was not chosen on.

    python -m evals.ablation FOLDER FOLDER... --work FOLDER [--sample N] [--measure evidence]

Each FOLDER is a test set; sets of one family have names that begin alike. Three tables come out: the gain of each rule
over leaving it out; the same with its value chosen on the other families; and what all values together reach, chosen on
the other families. `--measure evidence` makes them for what an agent gets to read of transcripts.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from evals.query_vectors import remembered_queries

from notewell.evaluation.evidence import TRANSCRIPT
from notewell.evaluation.metrics import mean, ndcg
from notewell.evaluation.runner import found_documents, open_memory, write_workspaces
from notewell.evaluation.test_sets import EvalSet, load_set
from notewell.protocols import Embedder
from notewell.search.tuning import TUNING, Tuning

RESAMPLES = 2_000  # of the bootstrap
RANKED = 100  # hits a question: enough for ten documents, also where each has many chunks
MOST_PASSES = 2  # of coordinate descent; a third changes next to nothing
TOLERATED_LOSS = 0.005  # on one set, beyond two standard errors


@dataclass(frozen=True, slots=True)
class Rule:
    """A number of the ranking: the value that turns its rule off, if there is one, and those to choose from."""

    field: str  # of Tuning
    off: float | None
    grid: tuple[float, ...]
    measured_on: tuple[str, ...] = ("documents",)
    chosen_together: bool = False  # with the others that are

    @property
    def values(self) -> tuple[float, ...]:
        return self.grid if self.off is None else (self.off, *self.grid)


NEVER = 1e9  # times what is usual, so that nothing stands out

RULES = (
    Rule("text_weight", None, (0.55, 0.65, 0.75), chosen_together=True),
    Rule("usual_share", NEVER, (0.4, 0.6, 0.8), ("documents", "evidence")),
    Rule("half_match", None, (0.35, 0.5, 0.75), chosen_together=True),
    Rule("function_words", 0, (0.3, 0.5, 0.8), ("documents", "evidence")),
    Rule("pairs", 0, (0.3, 0.5, 0.7), ("documents", "evidence"), chosen_together=True),
    Rule("piece_loss", 0, (0.02, 0.04, 0.06), ("documents", "evidence"), chosen_together=True),
    Rule("neighbour_turns", 0, (0.2, 0.3, 0.4), ("evidence",)),
    Rule("ordinary_weight", 0, (0.5, 1.0, 1.5)),
    Rule("absent_pairs", 1, (0.3, 0.5, 0.7)),
    Rule("about_share", 1, (0.6, 0.75, 0.9)),
)

PerQuery = Mapping[str, Sequence[float]]  # by metric, in the order of the queries
Ask = Callable[[EvalSet, Tuning], PerQuery]
Values = Callable[[EvalSet, Tuning], Sequence[float]]  # of one metric


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="keep indexes and the vectors of questions here")
    parser.add_argument("--sample", type=int, metavar="N", help="ask at most N questions of each set")
    parser.add_argument("--measure", choices=("documents", "evidence"), default="documents", help="what to rank")
    options = parser.parse_args()
    sets = [load_set(folder) for folder in options.folders]
    if options.sample:
        sets = [eval_set.sample(options.sample) for eval_set in sets]
    options.work.mkdir(parents=True, exist_ok=True)
    with remembered_queries(options.work) as embedder:
        if options.measure == "documents":
            asked = Asked(Documents(sets, options.work, embedder))
            print_tables(asked.values_of("nDCG@10"), sets, rules_for("documents"), "nDCG@10")
            return
        turns = [eval_set for eval_set in sets if TRANSCRIPT.suits(eval_set)]
        asked = Asked(Transcripts(turns, options.work, embedder))
        for metric in ("evidence@6", "evidence@4000"):
            print_tables(asked.values_of(metric), turns, rules_for("evidence"), metric)


def rules_for(kind: str) -> list[Rule]:
    """Return the rules that act on notes (`documents`) or on transcripts (`evidence`)."""
    return [rule for rule in RULES if kind in rule.measured_on]


def print_tables(values: Values, sets: Sequence[EvalSet], rules: Sequence[Rule], metric: str) -> None:
    """Print the tables of one metric; those that leave families out need more than one."""
    with_off = [rule for rule in rules if rule.off is not None]
    together = [rule for rule in rules if rule.chosen_together]
    several = len({eval_set.family for eval_set in sets}) > 1
    _print(f"{metric}: gain of each rule over leaving it out", gains_table(values, sets, with_off))
    if several:
        _print(f"{metric}: gain with values chosen on the other families", left_out_table(values, sets, with_off))
    if several and len(together) > 1:
        fields = ", ".join(rule.field for rule in together)
        _print(f"{metric}: {fields} chosen on the other families", chosen_table(values, sets, together))


def _print(title: str, lines: Iterator[str]) -> None:
    print(f"\n## {title}\n")
    for line in lines:
        print(line, flush=True)


# --- asking ----------------------------------------------------------------------------------------


class Documents:
    """Asks for documents, each one a note."""

    def __init__(self, sets: Sequence[EvalSet], work: Path, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._workspaces = {eval_set.name: write_workspaces(eval_set, work) for eval_set in sets}
        for workspaces in self._workspaces.values():
            for workspace in workspaces.values():
                _index(workspace.folder, {})

    def __call__(self, eval_set: EvalSet, tuning: Tuning) -> PerQuery:
        values: dict[str, float] = {}
        for scope, workspace in self._workspaces[eval_set.name].items():
            with open_memory(workspace.folder, {}, embedder=self._embedder, tuning=tuning) as memory:
                for query in (q for q in eval_set.queries if q.scope == scope):
                    answer = memory.search(query.text, limit=RANKED, min_score=0, sync=False)
                    values[query.id] = ndcg(found_documents(answer, workspace), query.grades)
        return {"nDCG@10": [values[query.id] for query in eval_set.queries]}


class Transcripts:
    """Asks for what an agent gets to read, each scope one transcript."""

    def __init__(self, sets: Sequence[EvalSet], work: Path, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._conversations = {eval_set.name: TRANSCRIPT.conversations(eval_set, work) for eval_set in sets}
        for conversations in self._conversations.values():
            for conversation in conversations.values():
                _index(conversation.folder, conversation.flags)

    def __call__(self, eval_set: EvalSet, tuning: Tuning) -> PerQuery:
        shares: dict[str, Mapping[str, float]] = {}
        for scope, talk in self._conversations[eval_set.name].items():
            with open_memory(talk.folder, talk.flags, embedder=self._embedder, tuning=tuning) as memory:
                for query in (q for q in eval_set.queries if q.scope == scope):
                    answer = memory.search(query.text, sync=False)
                    answering = [talk.turns[turn] for turn in query.grades]
                    shares[query.id] = TRANSCRIPT.shares(memory, answer, answering)
        metrics = next(iter(shares.values()))
        return {metric: [shares[query.id][metric] for query in eval_set.queries] for metric in metrics}


def _index(folder: Path, flags: Mapping[str, object]) -> None:
    with open_memory(folder, flags) as memory:
        memory.index()


class Asked:
    """Remembers what was asked, so that no set is asked twice with the same numbers."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._known: dict[tuple[str, Tuning], PerQuery] = {}

    def values_of(self, metric: str) -> Values:
        """Return what gives the values of one metric."""
        return lambda eval_set, tuning: self._per_query(eval_set, tuning)[metric]

    def _per_query(self, eval_set: EvalSet, tuning: Tuning) -> PerQuery:
        key = eval_set.name, tuning
        if key not in self._known:
            started = time.perf_counter()
            self._known[key] = self._ask(eval_set, tuning)
            figures = ", ".join(f"{metric} {mean(values):.4f}" for metric, values in self._known[key].items())
            took_s = time.perf_counter() - started
            print(f"{eval_set.name}, {_changes(tuning)}: {figures} ({took_s:.1f} s)", file=sys.stderr, flush=True)
        return self._known[key]


def _changes(tuning: Tuning) -> str:
    """Return the numbers that are not the default ones."""
    changed = {rule.field: getattr(tuning, rule.field) for rule in RULES}
    different = [f"{name} {value:g}" for name, value in changed.items() if value != getattr(TUNING, name)]
    return ", ".join(different) or "default"


# --- statistics ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gain:
    """A mean difference with its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.4f} [{self.low:+.4f}, {self.high:+.4f}]"


def gain_of(differences_by_set: Sequence[Sequence[float]], *, seed: int = 0) -> Gain:
    """Return the mean over sets of their mean paired differences; the bootstrap draws the questions of each set."""
    draw = np.random.default_rng(seed)
    resampled = np.zeros(RESAMPLES)
    for differences in differences_by_set:
        values = np.asarray(differences, dtype=float)
        drawn = (values[draw.integers(0, len(values), len(values))].mean() for _ in range(RESAMPLES))
        resampled += np.fromiter(drawn, dtype=float, count=RESAMPLES) / len(differences_by_set)
    low, high = np.quantile(resampled, (0.025, 0.975))
    return Gain(mean([mean(differences) for differences in differences_by_set]), float(low), float(high))


def differences(better: Sequence[float], other: Sequence[float]) -> list[float]:
    """Return the difference for each question."""
    return [one - two for one, two in zip(better, other, strict=True)]


def loses(differences: Sequence[float]) -> bool:
    """Say whether a set loses more than is tolerated, beyond two standard errors."""
    error = float(np.std(differences, ddof=1)) / len(differences) ** 0.5 if len(differences) > 1 else 0.0
    return mean(differences) + 2 * error < -TOLERATED_LOSS


def stays(differences_by_set: Sequence[Sequence[float]]) -> bool:
    """Say whether a rule stays: it surely gains in the mean over the sets, and surely harms none of them."""
    return gain_of(differences_by_set).low > 0 and not any(map(loses, differences_by_set))


def best_value(rule: Rule, values: Sequence[float], sets: Sequence[EvalSet], score: Values, start: Tuning) -> float:
    """Return the value of a rule with the best mean over the sets; the first of equals."""
    return max(values, key=lambda value: _mean_over(sets, score, with_numbers(start, {rule.field: value})))


def chosen_together(rules: Sequence[Rule], sets: Sequence[EvalSet], score: Values, start: Tuning = TUNING) -> Tuning:
    """Return the numbers with the best mean over the sets, by coordinate descent: one rule at a time, until none moves.

    What is in use stays unless another value is better.
    """
    tuning = start
    for _ in range(MOST_PASSES):
        before = tuning
        for rule in rules:
            values = dict.fromkeys((getattr(tuning, rule.field), *rule.values))
            tuning = with_numbers(tuning, {rule.field: best_value(rule, list(values), sets, score, tuning)})
        if tuning == before:
            break
    return tuning


def with_numbers(tuning: Tuning, numbers: Mapping[str, Any]) -> Tuning:
    """Return the tuning with other values in these fields."""
    return replace(tuning, **numbers)


def _mean_over(sets: Sequence[EvalSet], score: Values, tuning: Tuning) -> float:
    return mean([mean(score(eval_set, tuning)) for eval_set in sets])


# --- tables ----------------------------------------------------------------------------------------


def gains_table(values: Values, sets: Sequence[EvalSet], rules: Sequence[Rule]) -> Iterator[str]:
    """Yield the gain of the default over each rule turned off, one at a time, then over all turned off."""
    without = {rule.field: {rule.field: rule.off} for rule in rules}
    without["all of these"] = {rule.field: rule.off for rule in rules}
    yield f"| rule | {' | '.join(eval_set.name for eval_set in sets)} | mean |"
    yield f"|---|{'--:|' * (len(sets) + 1)}"
    for name, off in without.items():
        gains = [differences(values(each, TUNING), values(each, with_numbers(TUNING, off))) for each in sets]
        yield f"| {name} | {' | '.join(str(gain_of([gain])) for gain in gains)} | {gain_of(gains)} |"


def left_out_table(values: Values, sets: Sequence[EvalSet], rules: Sequence[Rule]) -> Iterator[str]:
    """Yield the gain of each rule over leaving it out, on sets that its value was not chosen on, and the verdict."""
    yield "| rule | chosen | mean gain | worst set | verdict |"
    yield "|---|---|--:|---|---|"
    for rule in rules:
        gains: dict[str, list[float]] = {}
        chosen: dict[str, float] = {}
        off = with_numbers(TUNING, {rule.field: rule.off})
        for family, inside, outside in _families(sets):
            chosen[family] = best_value(rule, rule.grid, outside, values, TUNING)
            on = with_numbers(TUNING, {rule.field: chosen[family]})
            gains |= {each.name: differences(values(each, on), values(each, off)) for each in inside}
        worst = min(gains, key=lambda name: mean(gains[name]))
        verdict = "stays" if stays(list(gains.values())) else "goes"
        yield (
            f"| {rule.field} | {_values_chosen(chosen)} | {gain_of(list(gains.values()))} "
            f"| {worst} {mean(gains[worst]):+.4f} | {verdict} |"
        )


def chosen_table(values: Values, sets: Sequence[EvalSet], rules: Sequence[Rule]) -> Iterator[str]:
    """Yield what every set reaches with the numbers chosen on the other families, beside the default ones."""
    yield f"| set | default | chosen elsewhere | difference | {' | '.join(rule.field for rule in rules)} |"
    yield f"|---|--:|--:|--:|{'--:|' * len(rules)}"
    defaults, reached, gains = [], [], []
    for _, inside, outside in _families(sets):
        tuning = chosen_together(rules, outside, values)
        numbers = " | ".join(f"{getattr(tuning, rule.field):g}" for rule in rules)
        for each in inside:
            defaults.append(mean(values(each, TUNING)))
            reached.append(mean(values(each, tuning)))
            gains.append(differences(values(each, tuning), values(each, TUNING)))
            yield f"| {each.name} | {defaults[-1]:.4f} | {reached[-1]:.4f} | {gain_of(gains[-1:])} | {numbers} |"
    yield f"| mean | {mean(defaults):.4f} | {mean(reached):.4f} | {gain_of(gains)} |{' |' * len(rules)}"


def _families(sets: Sequence[EvalSet]) -> Iterator[tuple[str, list[EvalSet], list[EvalSet]]]:
    """Yield each family with its sets and all others."""
    for family in dict.fromkeys(eval_set.family for eval_set in sets):
        inside = [eval_set for eval_set in sets if eval_set.family == family]
        yield family, inside, [eval_set for eval_set in sets if eval_set.family != family]


def _values_chosen(chosen: Mapping[str, float]) -> str:
    """Return the value, or for each the families it was chosen for."""
    by_value: dict[float, list[str]] = {}
    for family, value in chosen.items():
        by_value.setdefault(value, []).append(family)
    if len(by_value) == 1:
        return f"{next(iter(by_value)):g}"
    return "; ".join(f"{value:g} for {', '.join(families)}" for value, families in sorted(by_value.items()))


if __name__ == "__main__":
    main()
