"""nao tests (seed 000; nao-core 0.3.29 where it is silent): reading, judging, accepting.

May not: know another format; talk to a nao backend (`agents/nao`); compare rows (`frames`).
"""
