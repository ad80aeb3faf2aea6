"""Models asked directly: OpenAI, Anthropic, Ollama, LiteLLM, classifiers; their streams, tools and prices.

May not: know formats or runs.
"""
