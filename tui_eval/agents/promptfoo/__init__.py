"""promptfoo's own providers (HTTP, webhook, websocket, relays) and what its settings of models mean.

They stand here, not in `formats/promptfoo`, as nao's and neuro-san's protocols do: `tui_eval.yaml` names them for
suites of any format, other agents (`models`, `programs`) read the same settings, and a format is read and judged
without asking anybody.

May not: read suites (`formats/promptfoo/read`).
"""
