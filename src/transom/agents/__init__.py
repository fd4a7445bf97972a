"""A host's tools for agent frameworks, a module for each; import the one you use.

pydantic_ai     `HostToolset(host)`      pip install "transom[pydantic-ai]"
openai_agents   `HostServer(host)`       pip install "transom[openai-agents]"
langchain       `HostMiddleware(host)`   pip install "transom[langchain]"
"""
