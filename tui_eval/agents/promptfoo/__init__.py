"""promptfoo's own providers (HTTP, webhook, websocket, relays) and what its settings of models mean.

May not: read suites (`formats/promptfoo/read`).
"""
