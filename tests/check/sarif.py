"""The parts of the SARIF 2.1.0 schema that a log of ours uses, as strict as the whole is."""

from typing import Any


def closed(required: list[str], **properties: Any) -> Any:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


TEXT = {"type": "string"}
BAG = {"type": "object"}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
MULTIFORMAT = closed(["text"], text=TEXT, markdown=TEXT)
MESSAGE = closed(["text"], text=TEXT, markdown=TEXT, id=TEXT)
DESCRIPTOR = closed(
    ["id"],
    id=TEXT,
    name=TEXT,
    shortDescription=MULTIFORMAT,
    fullDescription=MULTIFORMAT,
    help=MULTIFORMAT,
    helpUri={"type": "string", "format": "uri"},
    defaultConfiguration=closed([], level=LEVEL, enabled={"type": "boolean"}),
    properties=BAG,
)
LOCATION = closed(
    [],
    physicalLocation=closed(
        ["artifactLocation"],
        artifactLocation=closed([], uri={"type": "string", "format": "uri-reference"}),
        region=closed([], startLine={"type": "integer", "minimum": 1}),
    ),
    logicalLocations={
        "type": "array",
        "uniqueItems": True,
        "items": closed([], name=TEXT, kind=TEXT, fullyQualifiedName=TEXT),
    },
)
RESULT = closed(
    ["message"],
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": -1},
    level=LEVEL,
    message=MESSAGE,
    locations={"type": "array", "items": LOCATION},
)
INVOCATION = closed(
    ["executionSuccessful"],
    executionSuccessful={"type": "boolean"},
    toolExecutionNotifications={
        "type": "array",
        "items": closed(["message"], message=MESSAGE, level=LEVEL),
    },
)
DRIVER = closed(
    ["name"],
    name=TEXT,
    version=TEXT,
    rules={"type": "array", "uniqueItems": True, "items": DESCRIPTOR},
)
SARIF = closed(
    ["version", "runs"],
    **{"$schema": {"type": "string", "format": "uri"}},
    version={"const": "2.1.0"},
    runs={
        "type": "array",
        "items": closed(
            ["tool"],
            tool=closed(["driver"], driver=DRIVER),
            invocations={"type": "array", "items": INVOCATION},
            results={"type": "array", "items": RESULT},
        ),
    },
)
