"""neuro-san's data-driven test cases (seed 004): HOCON, reading, judging, accepting.

May not: know another format; run agent networks (`agents/neuro_san`).
"""
