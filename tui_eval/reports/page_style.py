"""How the HTML pages look: light and dark, readable by keyboard and on paper, nothing from outside."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1a1d21; --muted: #59626d; --line: #dfe3e8;
--panel: #f5f7f9; --passed: #1a7f37; --failed: #c21f2b; --error: #8a5a00; --accent: #0860c4; }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --text: #e4e7ea; --muted: #9aa4af;
--line: #2d343b; --panel: #1b2025; --passed: #56c987; --failed: #ff8078; --error: #e6b450; --accent: #72b7ff; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; color: var(--text); background: var(--back);
margin: 0 auto; max-width: 76rem; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .25rem 0 .75rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
h3 { font-size: .95rem; margin: 1rem 0 .25rem; } p { margin: .25rem 0; } a { color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
.muted, dt, .who { color: var(--muted); } .passed { color: var(--passed); } .failed { color: var(--failed); }
.error { color: var(--error); } .cancelled, .skipped, .not { color: var(--muted); }
.bar { display: flex; height: .6rem; border-radius: .3rem; overflow: hidden; background: var(--line); margin: .5rem 0 1rem; }
.bar span { background: currentColor; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; }
dl.facts dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; } .scroll { overflow-x: auto; }
th { font-weight: 600; color: var(--muted); } th, td { text-align: left; padding: .35rem .75rem .35rem 0;
border-bottom: 1px solid var(--line); vertical-align: top; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.filter { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: .75rem 0; padding: 0; border: 0; }
.filter legend { float: left; margin-right: 1rem; color: var(--muted); } .filter label { cursor: pointer; }
body:has(#show-bad:checked) .case[data-outcome=passed], body:has(#show-passed:checked) .case:not([data-outcome=passed]),
body:has(#show-flaky:checked) .case:not([data-flaky]) { display: none; }
.case { border-bottom: 1px solid var(--line); }
.case > summary { display: grid; grid-template-columns: 6.5rem 1fr 5rem 5rem 5rem; gap: 0 .75rem; padding: .4rem .25rem;
cursor: pointer; list-style: none; } .case > summary::-webkit-details-marker { display: none; }
.case > summary:hover, .case[open] > summary { background: var(--panel); }
.case > summary .why { grid-column: 2 / -1; color: var(--muted); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.case[open] > summary .why { white-space: pre-wrap; } .name { font-weight: 600; overflow-wrap: anywhere; }
.inside { padding: .5rem 0 1.25rem 7.5rem; } .attempt > summary { cursor: pointer; padding: .2rem 0; }
.attempt .attempt-inside { border-left: 3px solid var(--line); padding-left: 1rem; margin: .25rem 0 1rem; }
code { font: 13px/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; background: var(--panel); padding: .1rem .35rem;
border-radius: 3px; margin-right: .5rem; overflow-wrap: anywhere; }
pre { font: 13px/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre-wrap; overflow-wrap: anywhere;
margin: .15rem 0 .6rem; background: var(--panel); padding: .5rem .75rem; border-radius: 4px; }
ul.verdicts { list-style: none; margin: .25rem 0; padding: 0; } ul.verdicts li { margin: .2rem 0; }
.cells { width: auto; } .cells td { padding-right: 1.5rem; } .cells td:first-child { white-space: nowrap; }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
svg { display: block; width: 100%; height: 4rem; color: var(--passed); margin: .5rem 0 1rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: .75rem; margin: 1rem 0 1.5rem; }
.card { background: var(--panel); border-radius: 6px; padding: .6rem .85rem; font-size: .9rem; display: grid; grid-template-columns: 1fr auto; }
.card strong { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; } .card svg { grid-column: 1 / -1; height: 2.5rem; margin: .4rem 0 .25rem; }
.card .muted { grid-column: 1 / -1; font-size: .8rem; }
.runs .bar { min-width: 7rem; margin: .5rem 0 0; } .when { white-space: nowrap; } small { font-size: .8rem; }
.choice { display: flex; flex-wrap: wrap; gap: .5rem 1rem; margin: 1rem 0; align-items: end; } .choice label { flex: 1 1 20rem; color: var(--muted); }
select, button { font: inherit; color: var(--text); background: var(--panel); border: 1px solid var(--line); border-radius: 4px; padding: .3rem .6rem; }
select { display: block; width: 100%; } button { cursor: pointer; }
.both th[scope] { white-space: nowrap; padding-right: 1.5rem; } .both td { width: 40%; } svg.interval { height: .55rem; max-width: 20rem; margin: .3rem 0 .1rem; color: var(--text); background: var(--line); border-radius: 2px; }
svg.interval .range { fill: var(--muted); opacity: .55; }
.group > summary { cursor: pointer; } .group h2 { display: inline-block; } .group h2 .muted { font-weight: 400; font-size: .95rem; } .changes td:first-child { width: 6.5rem; } .changes .why { color: var(--muted); }
.changes td:last-child { white-space: nowrap; text-align: right; } .changes a { text-decoration: none; } .changes a:hover { text-decoration: underline; }
del { background: color-mix(in srgb, var(--failed) 22%, transparent); text-decoration: line-through; text-decoration-thickness: 1px; border-radius: 2px; }
ins { background: color-mix(in srgb, var(--passed) 24%, transparent); text-decoration: none; border-bottom: 2px solid var(--passed); }
.heads { position: sticky; top: 0; background: var(--back); padding: .4rem 0; border-bottom: 1px solid var(--line); }
.entry .sides > * { min-width: 0; } .entry strong { color: var(--failed); }
@media (max-width: 44rem) { .runs thead, .runs td:nth-child(n+4):nth-child(-n+6) { display: none; } .runs tr { display: grid;
grid-template-columns: auto auto 1fr; border-bottom: 1px solid var(--line); padding: .5rem 0; } .runs td { border: 0; padding: 0 1rem 0 0; }
.runs td:last-child { text-align: right; padding: 0; } .cards { grid-template-columns: 1fr 1fr; } .card { padding: .5rem .6rem; } .heads { position: static; }
.runs td:nth-child(2), .runs td:nth-child(3) { grid-column: 1 / -1; } .runs td:nth-child(1) { grid-column: 1 / -1; } .changes tr { display: grid;
grid-template-columns: max-content 1fr; gap: 0 .75rem; border-bottom: 1px solid var(--line); } .changes td { border: 0; } .changes td:last-child { grid-column: 2; text-align: left; }
.both { table-layout: fixed; font-size: .85rem; } .both th, .both td { overflow-wrap: anywhere; } .both th[scope] { white-space: normal; padding-right: .5rem; } .both tr > :last-child { width: 3.5rem; } }
@media (max-width: 44rem) { .case > summary { grid-template-columns: 6rem 1fr 4rem; } .case > summary .cost, .case > summary .time
{ display: none; } .inside { padding-left: 0; } .sides { grid-template-columns: 1fr; } }
@media print { .filter { display: none; } .case { break-inside: avoid; } }
"""
