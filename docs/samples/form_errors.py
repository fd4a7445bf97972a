"""Two ways to say no: to the model, and to the program that called."""

import asyncio

from sample_host import hosting

# region view
from transom import App, ProtocolError, ToolError

app = App("sign-up", "1.0.0")
form = {"email": ""}


@app.tool(name="submit-form")
def submit_form() -> str:
    """Submit the form as the user filled it in."""
    if "@" not in form["email"]:
        raise ToolError("Form has validation errors: email is not an address")
    return "Submitted"


@app.tool(name="read-form")
def read_form(page: int = 1) -> dict[str, str]:
    """Read what the user has filled in."""
    if page != 1:
        raise ProtocolError(-32002, "There is one page only", {"pages": 1})
    return form


@app.tool(name="break-form")
def break_form() -> float:
    return 1 / 0


@app.on_error
def report(error: BaseException) -> None:
    problems.append(error)


problems: list[BaseException] = []
# endregion


async def main() -> None:
    async with hosting(app) as bridge:
        result = await bridge.call_tool("submit-form")
        assert result.is_error
        assert result.text == "Form has validation errors: email is not an address"
        form["email"] = "ada@example.com"
        assert (await bridge.call_tool("submit-form")).text == "Submitted"

        # region bad-arguments
        result = await bridge.call_tool("read-form", {"page": "one", "colour": "red"})
        assert result.is_error
        assert result.text.splitlines() == [
            "Invalid arguments for tool read-form:",
            "- page: expected integer, got string",
            "- colour: is not expected; known: page",
        ]
        # endregion

        for name, arguments, message in (
            ("read-form", {"page": 2}, "There is one page only"),
            ("break-form", {}, "Tool break-form failed"),
            ("no-form", {}, "Tool no-form not found"),
        ):
            try:
                await bridge.call_tool(name, arguments)
            except ProtocolError as error:
                assert error.message == message
            else:
                raise AssertionError(f"{name} was answered")
        assert isinstance(problems[0], ZeroDivisionError)  # what the host is not told


if __name__ == "__main__":
    asyncio.run(main())
