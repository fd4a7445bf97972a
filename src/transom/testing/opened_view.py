"""One View in a test: what it offers, what it asked for, and what went wrong in it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from transom.drive.snapshot import Snapshot
from transom.errors import TransomError, UsageError
from transom.host.host import Host
from transom.host.views.view import View
from transom.json_values import as_object
from transom.protocol.lifecycle import LifecycleState
from transom.protocol.messages import ToolOutcome
from transom.testing.pictures import compare_pictures
from transom.testing.view_files import ViewFiles
from transom.traffic import TrafficMessage
from transom.types import Tool, ToolResult, ViewProblem

if TYPE_CHECKING:
    from playwright.async_api import Frame

_NOT_ASKED = ("ui/initialize", "ping")
_FAILS = ("error", "rejection", "blocked", "schema", "tool", "tools")
_REF = re.compile(r" \[[a-z]\d+\]")
_MAX_PICTURES = 5  # of a page that never rests
# A page that hides its frame from sight, or is behind another, is not drawn.
_DRAWN = """() => new Promise((resolve) => {
  setTimeout(resolve, 5000);
  requestAnimationFrame(() => requestAnimationFrame(resolve));
})"""


class Sent(NamedTuple):
    """A request of a View to its host."""

    method: str
    """Such as `tools/call`, `ui/message`, `ui/open-link`, `ui/update-model-context`."""
    params: dict[str, Any]


class OpenedView:
    """A View that `views.open` opened."""

    def __init__(
        self, host: Host, view: View, result: ToolResult, frame: Frame | None, files: ViewFiles
    ) -> None:
        self.host = host
        """The test's `Host`."""
        self.view = view
        """The host's `View`, for what this object does not offer."""
        self.result = result
        """What the tool that opened it answered."""
        self.sent: list[Sent] = []
        """Every request of the View to its host: calls of the server's tools, messages, links."""
        self.problems: list[ViewProblem] = []
        """What went wrong in the View: errors, blocked requests, console errors."""
        self._frame = frame
        self._files = files
        self._allowed: list[str] = []
        self._changed = asyncio.Event()

    def __repr__(self) -> str:
        return f"<OpenedView {self.view.id}, {len(self.tools)} tools>"

    @property
    def page(self) -> Frame:
        """The View's page, as Playwright's frame: `view.page.get_by_text("Save").click()`."""
        if self._frame is None:
            raise UsageError(f"View {self.view.id} is written in Python: it has no page")
        return self._frame

    # --- its tools ---------------------------------------------------------------------------

    @property
    def tools(self) -> dict[str, Tool]:
        """Its tools by name, as of the last listing; `assert_tools` waits for changes."""
        return {tool.name: tool for tool in self.view.tools}

    @property
    def disabled_tools(self) -> dict[str, str | None]:
        """Its disabled tools by name, with the reason."""
        return {tool.name: tool.reason for tool in self.view.disabled_tools}

    async def call(self, tool: str, /, **arguments: Any) -> ToolResult:
        """Call a tool of the View, as a model does. A result with `is_error` is returned, too.

        Raises:
            AssertionError: the View has no such tool; the text names those it has.
            TransomError: there is no result, because the host refused or the View failed.
        """
        __tracebackhide__ = True
        await self.host.list_tools()
        if tool not in self.tools and tool not in self.disabled_tools:
            raise AssertionError(f"View {self.view.id} has no tool {tool}; {self._described()}")
        return await self.view.call_tool(tool, arguments)

    async def refusal(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool of the View that has to answer with an error; the text of that.

        Raises:
            AssertionError: it answered with none, or the View has no such tool.
        """
        __tracebackhide__ = True
        result = await self.call(tool, **arguments)
        if not result.is_error:
            raise AssertionError(f"{tool} of View {self.view.id} did not fail: {result.text[:500]}")
        return result.text

    def _described(self) -> str:
        disabled = [
            f"{name} ({reason})" if reason else name for name, reason in self.disabled_tools.items()
        ]
        text = f"it has: {', '.join(self.tools) or 'none'}"
        text += f"; disabled: {', '.join(disabled)}" if disabled else ""
        return text + (f"; left out: {self.view.left_out}" if self.view.left_out else "")

    async def assert_tools(
        self, *names: str, disabled: Sequence[str] = (), timeout: float = 10.0
    ) -> None:
        """Wait until the View offers exactly these tools, in any order.

        Args:
            names: the tools that a model can call.
            disabled: those that are there but disabled.
            timeout: seconds to wait.

        Raises:
            AssertionError: it has others; the text says which.
        """
        __tracebackhide__ = True

        def fit(tools: Mapping[str, Tool]) -> bool:
            return {*tools} == {*names} and {*self.disabled_tools} >= {*disabled}

        if not await self._wait_for_tools(fit, timeout):
            wanted = ", ".join(names) or "none"
            wanted += f"; disabled: {', '.join(disabled)}" if disabled else ""
            missing = sorted({*names} - {*self.tools})
            extra = sorted({*self.tools} - {*names})
            found = [f"missing: {', '.join(missing)}"] if missing else []
            found += [f"not expected: {', '.join(extra)}"] if extra else []
            raise AssertionError(
                f"View {self.view.id} should have the tools {wanted}\n{self._described()}\n"
                + "\n".join(found)
            )

    async def wait_for_tools(
        self, fit: Callable[[Mapping[str, Tool]], bool], *, timeout: float = 10.0
    ) -> None:
        """Wait until a function says that the View's tools are as they should be.

            await view.wait_for_tools(lambda tools: "save" in tools)

        Raises:
            AssertionError: they are not in time; the text says what there is.
        """
        __tracebackhide__ = True
        if not await self._wait_for_tools(fit, timeout):
            raise AssertionError(f"View {self.view.id} has other tools; {self._described()}")

    async def _wait_for_tools(
        self, fit: Callable[[Mapping[str, Tool]], bool], timeout: float
    ) -> bool:
        async def holds() -> bool:
            await self.host.list_tools()
            return fit(self.tools)

        return await self._wait(holds, timeout)

    # --- what it does ------------------------------------------------------------------------

    def sent_calls(self, tool: str | None = None) -> list[dict[str, Any]]:
        """The arguments of the View's calls of its server's tools, of all or of one."""
        calls = [each.params for each in self.sent if each.method == "tools/call"]
        return [each.get("arguments", {}) for each in calls if tool in (None, each.get("name"))]

    async def wait_for_sent(self, method: str, count: int = 1, *, timeout: float = 10.0) -> Sent:
        """Wait until the View has sent so many requests of a method; the last of them.

        Its host may not have answered it yet: what it makes of it can be a moment later.

        Raises:
            AssertionError: it has not in time; the text has what it has sent.
        """
        __tracebackhide__ = True

        def matching() -> list[Sent]:
            return [each for each in self.sent if each.method == method]

        async def holds() -> bool:
            return len(matching()) >= count

        if not await self._wait(holds, timeout):
            sent = ", ".join(each.method for each in self.sent) or "nothing"
            raise AssertionError(f"View {self.view.id} has not sent {method}; it has sent: {sent}")
        return matching()[count - 1]

    async def _wait(self, holds: Callable[[], Awaitable[bool]], timeout: float) -> bool:
        try:
            async with asyncio.timeout(timeout):
                while not await holds():
                    self._changed.clear()
                    try:
                        async with asyncio.timeout(0.2):  # what has no event of ours
                            await self._changed.wait()
                    except TimeoutError:
                        continue
        except TimeoutError:
            return False
        return True

    def notify_changed(self) -> None:
        """Something about the View may have changed."""
        self._changed.set()

    def on_message(self, message: TrafficMessage) -> None:
        """See `TrafficListener`."""
        self._changed.set()
        request = {} if message.from_host else as_object(message.message)
        if "id" in request and "method" in request and request["method"] not in _NOT_ASKED:
            params = {**as_object(request.get("params"))}
            params.pop("_meta", None)
            self.sent.append(Sent(str(request["method"]), params))

    # --- what goes wrong ---------------------------------------------------------------------

    def allow_problems(self, *texts: str) -> None:
        """Do not fail the test for problems with one of these texts; without any, for none."""
        self._allowed += texts or ("",)

    @property
    def unexpected(self) -> list[ViewProblem]:
        """The problems for which the test fails: not console output, and not what is allowed."""
        return [
            problem
            for problem in self.problems
            if problem.kind in _FAILS and not any(text in problem.message for text in self._allowed)
        ]

    async def settle(self) -> None:
        """Wait until what the page did before has been reported."""
        try:
            if self.view.bridge is not None and self.view.takes_calls:
                await self.view.bridge.ping(timeout=2.0)
        except TransomError:
            pass  # a View that hangs reports no more

    # --- what it shows -----------------------------------------------------------------------

    async def snapshot(self, find: str | None = None) -> Snapshot:
        """What is on the View's page, as a model reads it."""
        return await self.view.snapshot(find=find)

    async def screenshot(self) -> bytes:
        """A PNG of the View."""
        return await self.view.screenshot()

    async def assert_snapshot(self, name: str | None = None) -> None:
        """Compare what the View shows, as text, with the snapshot of this test.

        `pytest --update-views` writes it, into `__views__` beside the test.

        Args:
            name: which, if the test has several.

        Raises:
            AssertionError: it shows something else, or there is no snapshot; the text has a diff.
        """
        __tracebackhide__ = True
        text = without_refs(await self.snapshot())
        file = self._files.snapshot("txt", name)
        if self._written(file, text.encode()):
            return
        before = file.read_text("utf-8")
        if text != before:
            import difflib  # noqa: PLC0415 - only for a failure

            lines = difflib.unified_diff(
                before.splitlines(), text.splitlines(), "snapshot", "View", lineterm=""
            )
            raise AssertionError(f"View {self.view.id} differs from {file}\n" + "\n".join(lines))

    async def assert_picture(self, name: str | None = None, *, tolerance: float = 0.001) -> None:
        """Compare a picture of the View with that of this test; see `assert_snapshot`.

        Pictures depend on the fonts and the browser of the machine. A dot differs if its red, green
        or blue does by more than an eye can see.

        Args:
            name: which, if the test has several.
            tolerance: how many dots may differ, as a part of all.

        Raises:
            AssertionError: more differ, or the size does, or there is no picture. The text names
                the file that shows where.
        """
        __tracebackhide__ = True
        picture = await self._steady_picture()
        file = self._files.snapshot("png", name)
        if self._written(file, picture) or picture == file.read_bytes():
            return
        found = await compare_pictures(self.page.page, file.read_bytes(), picture)
        if found.part <= tolerance:
            return
        folder = self._files.failure()
        (folder / f"{file.stem}.new.png").write_bytes(picture)
        (folder / f"{file.stem}.difference.png").write_bytes(found.picture)
        raise AssertionError(
            f"View {self.view.id} differs from {file} in {found.part:.2%} of its dots"
            f"{found.sizes}\nHow it looks now, and where it differs: {folder / file.stem}.*.png"
        )

    async def _steady_picture(self) -> bytes:
        """A picture when the page has drawn itself in the size that it wanted, and rests."""
        await self.screenshot()  # scrolls it into sight
        for _ in range(2):  # a page that is drawn tells its size, and is drawn again in that
            await self.page.evaluate(_DRAWN)
            await self.settle()
        picture = await self.screenshot()
        for _ in range(_MAX_PICTURES):
            before, picture = picture, await self.screenshot()
            if picture == before:
                break
        return picture

    def _written(self, file: Any, content: bytes) -> bool:
        if self._files.update:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            return True
        if not file.is_file():
            raise AssertionError(f"There is no snapshot {file}: run pytest --update-views")
        return False

    async def send_partial_input(self, **arguments: Any) -> None:
        """Give a View that `views.begin` opened the arguments as far as they are written."""
        await self.view.send_partial_input(arguments)

    async def send_input(self, **arguments: Any) -> None:
        """Give it the complete arguments."""
        await self.view.send_input(arguments)

    async def deliver(self, result: ToolOutcome) -> None:
        """Give it the result of its call."""
        await self.view.deliver(result)

    async def set_context(self, **changes: Any) -> None:
        """Change the View's surroundings, such as `theme="dark"`; it is told at once.

        Raises:
            ViewClosed: it is closed.
        """
        bridge = self.view.bridge
        if bridge is None or bridge.state is LifecycleState.CLOSED:
            raise self.view.closed_error()
        await bridge.set_context(**changes)

    async def close(self) -> None:
        """Tear the View down, as a host does."""
        await self.view.close("the test closed it")

    def described_tools(self) -> Mapping[str, Any]:
        """Its tools as plain values, for a file."""
        return {
            "tools": msgspec.to_builtins(self.view.tools),
            "disabled": self.disabled_tools,
            "leftOut": self.view.left_out,
        }


def without_refs(snapshot: Snapshot) -> str:
    """What a snapshot shows, without the references, which differ from run to run."""
    return _REF.sub("", snapshot.text) + "\n"
