"""A model that needs no key: it calls the tool whose description has most words of the question."""

import re

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{4,}", text.lower()))


async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    first, *later = [part for message in messages for part in message.parts]
    if results := [part for part in later if isinstance(part, ToolReturnPart)]:
        return ModelResponse(parts=[TextPart(results[0].model_response_str())])
    asked = words(str(first.content))
    tools = [each for each in info.function_tools if "required" not in each.parameters_json_schema]
    best = max(tools, key=lambda each: len(asked & words(each.description or "")))
    return ModelResponse(parts=[ToolCallPart(best.name, {})])


model = FunctionModel(answer)
