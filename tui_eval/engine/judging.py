"""What judging an attempt may use of the run: judges, databases, hosts of people's code."""

from __future__ import annotations

from typing import Any

from tui_eval.assertions.evidence import JudgeServices
from tui_eval.engine.environment import Environment
from tui_eval.engine.plan import Job


def judge_services(job: Job, environment: Environment, rows: Any = None) -> JudgeServices:
    """The services for judging a job's attempt; `rows` asks its agent for rows."""
    ask_judge, judge_name = environment.judge(job.judge)
    return JudgeServices(
        ask_judge=ask_judge,
        judge_name=judge_name,
        judge_is_network=environment.judge_is_network(job.judge),
        judge_for=lambda provider: environment.judge_for(provider, job.base),
        embed=lambda provider, texts: environment.embed(provider, texts, job.judge),
        run_sql=(lambda name, sql: environment.sql(name or job.database, sql))
        if environment.has_database(job.database)
        else None,
        rows=rows,
        python=environment.python,
        javascript=environment.javascript,
        node=environment.node,
        trust=environment.trust,
        root=environment.config.root,
        base=job.base,
        comparison=job.comparison,
        compares_columns=True,
    )
