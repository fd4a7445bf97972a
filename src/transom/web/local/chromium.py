"""Chromium: where it is, how it is started, its profile, and one that runs by itself.

Its process sandbox keeps a page that finds a hole in Chromium from doing what this user may do. It
is on wherever it can be: see `start_chromium`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import IO, Any, TypeVar

from transom.background import retrieve
from transom.errors import TransomError, UsageError
from transom.state_files import try_lock, unlock, write_private

_log = logging.getLogger(__name__)
_Started = TypeVar("_Started")

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_DELETED_AGAIN_AFTER = (0.1, 0.5, 2.0)
_PROFILE = "transom-profile-"
_LOCK = "transom.lock"  # in a profile that is kept
_LOCK_OF_WINDOWS = "transom.in-use"
_SETTLED_AFTER = 60.0  # seconds after which a process that created a folder has locked it
# The address bar's popups are pages of their own, made for each window: half of a browser's start.
# The rest is Playwright's own list, as far as it matters: the last switch given counts.
_DISABLED_FEATURES = (
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,AimEnabled,OptimizationHints,"
    "NetworkTimeServiceQuerying,PreconnectToSearch,MediaRouter,HttpsUpgrades,"
    "HttpsFirstBalancedModeAutoEnable,ThirdPartyStoragePartitioning,PaintHolding,"
    "AvoidCorsURLLoaderRestartOnRedirect,AvoidUnnecessaryBeforeUnloadCheckSync,"
    "DestroyProfileOnBrowserClose"
)
_LONGEST_TMPDIR = 56
_ARGUMENTS = [
    _DISABLED_FEATURES,
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Chromium without the parts of a window, such as Playwright's own, would give all Views one
    # process: one that hangs would hang them all.
    "--site-per-process",
    # No request for `<link rel=prerender>`, which a page's policy does not stop.
    "--enable-features=NoStatePrefetchHoldback",
]

# What Playwright adds for a browser that it starts, as far as Views can tell.
_AS_PLAYWRIGHT = [
    "--headless",
    "--hide-scrollbars",
    "--mute-audio",
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
    "--force-color-profile=srgb",
    "--allow-pre-commit-input",
    "--disable-back-forward-cache",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-breakpad",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-field-trial-config",
    "--disable-hang-monitor",
    "--disable-ipc-flooding-protection",
    "--disable-popup-blocking",
    "--disable-prompt-on-repost",
    "--disable-search-engine-choice-screen",
    "--enable-unsafe-swiftshader",
    "--metrics-recording-only",
    "--no-default-browser-check",
    "--password-store=basic",
    "--use-mock-keychain",
]
# A shell that ends the browser when its input ends, as it does with this process in any case.
_KEEPER = (
    '"$@" </dev/null & chromium=$!; exec 2>/dev/null; read -r _; kill $chromium; '
    "(sleep 5; kill -KILL 0) & wait $chromium; kill -KILL 0"  # itself, and what is left
)
_ENDED_WITHIN = 6.0  # seconds; its keeper gives it five
_READ_WITHIN = 1.0
_LAST_LINES, _MAX_TEXT = 20, 2000  # of what Chromium wrote before it ended

_SANDBOX = "TRANSOM_CHROMIUM_SANDBOX"
_NO_SANDBOX = (  # what Chromium writes, or Playwright says, if the system does not let it have one
    "No usable sandbox",
    "Failed to move to new namespace",
    "The SUID sandbox helper binary",
    "sandboxing failed",
)
_UNSANDBOXED = (
    "Chromium runs without its process sandbox, since %s: what a page does that breaks out of "
    "Chromium, it does as this user. %s."
)
_ALLOW_IT = (
    "Let Chromium use user namespaces (in a container, by its seccomp profile), or install its "
    "chromium-sandbox package"
)
_unsandboxed: set[str] = set()  # what does not start with one on this machine

# A page's policy does not cover connections between browsers, nor those that a browser makes ahead
# of time; no View needs them here.
_PREFERENCES = {
    "profile": {"block_third_party_cookies": False, "cookie_controls_mode": 0},
    "net": {"network_prediction_options": 2},
    "webrtc": {
        "ip_handling_policy": "disable_non_proxied_udp",
        "multiple_routes_enabled": False,
        "nonproxied_udp_enabled": False,
    },
}


def find_chromium() -> str | None:
    """The machine's own Chromium or Chrome; None: use the one that Playwright installs."""
    given = os.environ.get("TRANSOM_CHROMIUM")
    return given or next((path for name in _NAMES if (path := shutil.which(name))), None)


def chromium_environment(profile: Path) -> Mapping[str, str]:
    """Variables that make the browser put its temporary files into its profile.

    One of them is a socket, whose path may have at most 107 bytes.
    """
    short = len(os.fsencode(profile)) <= _LONGEST_TMPDIR
    return {**os.environ, **({"TMPDIR": str(profile)} if short else {})}


def chromium_arguments() -> list[str]:
    """The command-line switches of Chromium, which has no process sandbox for root."""
    return [*_ARGUMENTS, *(["--no-sandbox"] if _is_root() else [])]


async def start_chromium(executable: str, start: Callable[[bool], Awaitable[_Started]]) -> _Started:
    """Start Chromium with its process sandbox, or without it where it cannot have one.

    It cannot as root, nor where the system forbids it, as containers often do: that is logged.
    `TRANSOM_CHROMIUM_SANDBOX` can be `required`, which makes it an error, or `off`. Playwright
    leaves the sandbox out unless it is told otherwise.

    Args:
        executable: which one, or a name for it.
        start: starts it, with the sandbox or without.

    Raises:
        UsageError: it cannot have a sandbox, which is required.
    """
    wanted = os.environ.get(_SANDBOX, "")
    if wanted not in ("", "off", "required"):
        raise UsageError(f"{_SANDBOX} is {wanted!r}: it can be off or required")
    if wanted == "off":
        return await start(False)
    if _is_root():
        if wanted:
            raise UsageError(f"{_SANDBOX} is required, and Chromium has no sandbox as root")
        _log.info(_UNSANDBOXED, "this is root", "Use another user")
        return await start(False)
    if wanted or executable not in _unsandboxed:
        try:
            return await start(True)
        except Exception as error:
            if not any(mark in str(error) for mark in _NO_SANDBOX):
                raise
            if wanted:
                why = "and the system does not let Chromium have a sandbox"
                raise UsageError(f"{_SANDBOX} is required, {why}. {_ALLOW_IT}") from error
        _unsandboxed.add(executable)
        tell = f"{_ALLOW_IT}. {_SANDBOX}=off says that it is meant to be so"
        _log.warning(_UNSANDBOXED, "the system does not let it have one", tell)
    return await start(False)


class Profile:
    """A browser profile, temporary unless one is given, in which framed pages have storage.

    In private windows they have none, nor by default in the Chromium of some systems. It is locked
    while it is used: the temporary profile of a killed process is removed by the next start.
    """

    def __init__(self, kept: Path | None = None) -> None:
        _remove_abandoned_profiles()
        self._kept = kept
        self.path = kept or Path(mkdtemp(prefix=_PROFILE))
        self._locks: list[int] = []
        # Without `remove`, too: when this is garbage, or when the program ends.
        temporary = None if kept else self.path
        self._end = weakref.finalize(self, _release, self._locks, temporary, os.getpid())
        try:
            self._prepare()
        except BaseException:
            self._end()
            raise

    def _prepare(self) -> None:
        preferences = self.path / "Default" / "Preferences"
        preferences.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._kept is not None:
            self._locks.append(os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600))
            if not try_lock(self._locks[0]):
                raise TransomError(f"The profile {self.path} is used by another program")
        self._locks.append(_open_lock(self.path.resolve()))
        try_lock(self._locks[-1])
        if not preferences.exists():
            write_private(preferences, json.dumps(_PREFERENCES).encode())

    async def remove(self) -> None:
        """Delete it if it is temporary.

        Processes of a browser that was killed may write to it for a while. What they write after
        that is removed by the next start.
        """
        self._end()
        if self._kept is None:
            for delay in _DELETED_AGAIN_AFTER:
                await asyncio.sleep(delay)
                if not self.path.exists():
                    break
                _delete_unused(self.path)


class ChromiumProcess:
    """A Chromium without a window that belongs to no event loop: one after the other connects.

    It listens on the loopback interface, without a password. It ends with `close`, or with this
    process, however that ends. Not on Windows.
    """

    def __init__(self) -> None:
        self._profile: Profile | None = None
        self._process: subprocess.Popen[str] | None = None
        self._address: Future[str] = Future()
        self._reader = threading.Thread()

    async def address(self, installed: str) -> str:
        """Where it listens. It is started if it does not run.

        Args:
            installed: the path of Playwright's own Chromium, for a machine that has no other.

        Raises:
            TransomError: it did not start.
        """
        if self._process is not None and self._reader.is_alive():
            return await self._where()
        executable = find_chromium() or _that_is_there(Path(installed))

        async def start(sandbox: bool) -> str:
            await asyncio.to_thread(self.close)
            self._start(executable, sandbox=sandbox)
            return await self._where()

        return await start_chromium(executable, start)

    async def _where(self) -> str:
        address = asyncio.wrap_future(self._address)
        address.add_done_callback(retrieve)  # whoever waits for it may give up
        await asyncio.wait([address])
        return address.result()

    def _start(self, executable: str, *, sandbox: bool) -> None:
        profile = self._profile = Profile()
        switches = [
            f"--user-data-dir={profile.path}",
            "--remote-debugging-port=0",
            "--no-startup-window",  # Playwright would wait for a page that is being made, forever
            *_AS_PLAYWRIGHT,
            *chromium_arguments(),
            *([] if sandbox else ["--no-sandbox"]),
        ]
        process = self._process = subprocess.Popen(
            ["/bin/sh", "-c", _KEEPER, "sh", executable, *switches],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=chromium_environment(profile.path),
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._address = Future()
        self._reader = threading.Thread(
            target=_read_address, args=(process.stderr, self._address), daemon=True
        )
        self._reader.start()

    def close(self) -> None:
        """End it, and delete its profile. An event loop that runs here waits for that too."""
        process, self._process = self._process, None
        profile, self._profile = self._profile, None
        reader = self._reader
        if process is not None:
            assert process.stdin is not None  # noqa: S101 - a pipe was asked for
            process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_ENDED_WITHIN)
            # What hangs, or all of it if its keeper is gone. macOS refuses this for zombies.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            reader.join(_READ_WITHIN)  # another program may have what Chromium writes to
        if profile is not None:
            # A thread of its own: this one may have an event loop that runs.
            removing = threading.Thread(target=lambda: asyncio.run(profile.remove()))
            removing.start()
            removing.join()


def _read_address(output: IO[str], address: Future[str]) -> None:
    """Read what Chromium writes, until it ends: first its address."""
    last: deque[str] = deque(maxlen=_LAST_LINES)
    with output:
        for line in output:
            last.append(line.strip())
            if not address.done() and (found := re.search(r"DevTools listening on (ws:\S+)", line)):
                address.set_result(found[1])
    if not address.done():
        address.set_exception(TransomError(" ".join(last)[-_MAX_TEXT:] or "it ended at once"))


def _that_is_there(chromium: Path) -> str:
    """Playwright's Chromium, or the one without the parts of a window, if that alone is there."""
    for folder in chromium.parents:
        if folder.name.startswith("chromium-") and not chromium.exists():
            alone = folder.with_name(folder.name.replace("chromium-", "chromium_headless_shell-"))
            return str(next(alone.glob("*/*headless?shell"), chromium))
    return str(chromium)


def _release(locks: list[int], temporary: Path | None, process: int) -> None:
    """End the use of a profile by the process that made it, and not by a copy in its child."""
    while locks:
        lock = locks.pop()
        if os.getpid() == process:
            unlock(lock)
        os.close(lock)
    if temporary is not None and os.getpid() == process:
        _delete_unused(temporary)


def _open_lock(folder: Path) -> int:
    """Open what is locked while a profile is used: its folder.

    A file in it may be tidied away by then. It is one on Windows, which locks no folders.
    """
    if sys.platform == "win32":
        return os.open(folder / _LOCK_OF_WINDOWS, os.O_RDWR | os.O_CREAT, 0o600)
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def _remove_abandoned_profiles() -> None:
    """Remove this user's temporary profiles that no process uses."""
    for folder in Path(gettempdir()).glob(f"{_PROFILE}*"):
        with suppress(OSError):
            is_settled = time.time() - folder.lstat().st_mtime > _SETTLED_AFTER
            if is_settled and not (folder / _LOCK).exists():  # somebody keeps that one
                _delete_unused(folder)


def _delete_unused(folder: Path) -> None:
    """Delete a temporary profile, if it is this user's own and no process uses it.

    Once it is gone, anybody may make a folder with its name.
    """
    with suppress(OSError):
        lock = _open_lock(folder)
        try:
            is_own = sys.platform == "win32" or os.fstat(lock).st_uid == os.geteuid()
            is_unused = is_own and try_lock(lock)
        finally:
            os.close(lock)
        if is_unused:
            shutil.rmtree(folder, ignore_errors=True)


def _is_root() -> bool:
    geteuid: Any = getattr(os, "geteuid", None)
    return geteuid is not None and geteuid() == 0
