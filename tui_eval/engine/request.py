"""What a person asks the engine to run; the same for the app, the command line and a resumed run."""

import msgspec

from tui_eval.model import Compat, decoded
from tui_eval.store.run_folders import StoreError
from tui_eval.store.schema import RunInfo


class Recorded(msgspec.Struct, omit_defaults=True):
    """A recorded attempt to start from: `run` is a run's id or folder, `attempt` the attempt's id in it.
    The turns before `turn` are taken from it and the rest is sent; None: all of it, nothing is sent, and
    it is judged again."""

    run: str
    attempt: int
    turn: int | None = None


class RequestCell(msgspec.Struct, omit_defaults=True):
    """A case in one of its columns (`store.case_state`). `own`: that column is the suite's own, so that where
    the suite, or its agent's configuration, asks another now, that one is meant."""

    case_id: str
    agent: str
    model: str | None = None
    own: bool = False


class RunRequest(msgspec.Struct, omit_defaults=True):
    """Which cases, with whom, how often and within which limits.

    `case_ids` None means every case of `paths`; `select` takes names, ids, stems and folders. `cells` narrows
    to columns of cases (rerunning what did not pass where it did not pass): they are asked of these agents
    and models, whatever `agents` and `models` say; `agents` then only says which of them a person has typed.
    `threshold` (0–1) is the share of attempts that must pass; None: all, or what the case says. `timeout` in
    seconds, `max_cost` in USD. `step`: a person decides on each turn. `assess`: failures are grouped at the
    end, and named by the judge where there is one. `continue_from`: a recorded attempt goes before.
    `rescores` is the run whose answers are judged again, without an agent. `linked_to` is the run whose part
    is run again or added to. The filters from `filter_range` to `filter_errors_only`, `vars`, `prompt_prefix`
    and `prompt_suffix` are promptfoo's, by its names; `delay` is in seconds. `changed_only` leaves out what
    passed and has not changed since. `cache` takes answers that are kept, and keeps them (None: as each
    agent's entry says); `anew` is what a person runs again: none of them is taken, and they are replaced.
    `on` is where attempts run (`config_schema.where`; None: as configured), `on_recorded` says that a run's
    record names it, not a person: a cluster is then trusted as one in a file. `shard` is the part of the
    cases that this run takes (`engine.shards`). `no_fail_fast` takes back a run's `fail_fast` where it is
    gone on with. `env_files` are those whose variables were read (`--env-file`), to name them again.
    `configs` are promptfoo's `-c`: configurations that are read as one. `root` is the project where that is
    known (the app's), whatever `tui_eval.yaml` lies nearer to the paths.
    """

    paths: list[str] = []
    configs: list[str] = []
    case_ids: list[str] | None = None
    cells: list[RequestCell] | None = None
    agents: list[str] = []
    models: list[str] = []
    attempts: int | None = None
    threshold: float | None = None
    concurrency: int | None = None
    select: list[str] = []
    filter_pattern: str | None = None
    filter_metadata: list[str] = []
    filter_first_n: int | None = None
    failed_only: bool = False
    changed_only: bool = False
    cache: bool | None = None
    anew: bool = False
    on: str | None = None
    on_recorded: bool = False
    filter_range: str | None = None
    filter_sample: int | None = None
    filter_sample_seed: str | None = None
    filter_prompts: str | None = None
    filter_providers: str | None = None
    filter_failing: str | None = None
    filter_failing_only: str | None = None
    filter_errors_only: str | None = None
    delay: float | None = None
    vars: dict[str, str] = {}
    prompt_prefix: str | None = None
    prompt_suffix: str | None = None
    description: str = ""
    shard: str | None = None
    timeout: float | None = None
    trust: bool = False
    agreed: list[str] = []
    judge: str | None = None
    compat: Compat | None = None
    fail_fast: bool = False
    max_cost: float | None = None
    linked_to: str | None = None
    config_file: str | None = None
    root: str | None = None
    env_files: list[str] = []
    no_fail_fast: bool = False
    first_attempt: int = 1
    step: bool = False
    assess: bool = False
    continue_from: Recorded | None = None
    rescores: str | None = None
    command: str = ""


class ReachedLimit(msgspec.Struct, frozen=True):
    """A limit of a run that was reached, past which it can go on: that of its cost, of which so much is `spent`, with a
    `higher` one (USD, for all of the run); or, where it has none of cost, `--fail-fast`, with `bad` attempts that did
    not pass."""

    max_cost: float | None = None
    spent: float = 0.0
    higher: float = 0.0
    bad: int = 0

    def past(self, request: RunRequest) -> RunRequest:
        """The request to go on that is not held up by it."""
        if self.max_cost is None:
            return msgspec.structs.replace(request, no_fail_fast=True)
        return msgspec.structs.replace(request, max_cost=self.higher)


def request_of(info: RunInfo) -> RunRequest:
    """What a recorded run was asked for.

    Raises:
        StoreError: its options are none; a run can come from anywhere.
    """
    try:
        return msgspec.convert(info.options, RunRequest)
    except msgspec.ValidationError as error:
        raise StoreError(f"run {info.id}: damaged: its options: {' '.join(str(error).split())}") from None


decoded(RunRequest)
