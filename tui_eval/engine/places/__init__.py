"""Where attempts run: on the engine's own loop (`here`), or on the machines of a Ray cluster (`ray`).

`attempt_place` is the boundary. May not: decide what runs when, or write into a run's folder but through its log.
"""
