"""From a snapshot to a report: which rules were checked, which were not and why, what was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from transom.check.rule import Finding, Rule, Severity, Skip, order
from transom.check.rules import RULES
from transom.check.snapshot import Snapshot
from transom.json_values import JsonObject, as_object, clean

SEVERITIES: tuple[Severity, ...] = ("error", "warn", "info")
NEEDS_BROWSER = "needs --browser"
NEEDS_CALL = "needs --call"
HEURISTIC = "a heuristic: needs --heuristics"
IN_DEVELOPMENT = "not while developing (--dev)"
SHOWN_UNCALLED = 8


class Summary(msgspec.Struct, frozen=True):
    """How many findings there are of each severity."""

    error: int = 0
    warn: int = 0
    info: int = 0


class Report(msgspec.Struct, frozen=True):
    """The outcome of `transom check`. Its JSON is this struct, without what is about the run."""

    target: str
    findings: tuple[Finding, ...] = ()
    checked: tuple[str, ...] = ()
    skipped: tuple[Skip, ...] = ()
    summary: Summary = Summary()
    notes: tuple[str, ...] = ()
    """Remarks about the run."""
    failure: str | None = None
    """Why the server, or its Views where `--browser` was given, could not be checked."""
    server: str = ""
    tools: int = 0
    views: int = 0

    def fails_on(self, level: str) -> bool:
        """Whether there is a finding of severity `level` or worse; `never` is never reached."""
        if level not in SEVERITIES:
            return False
        worst = SEVERITIES[: SEVERITIES.index(level) + 1]
        return any(finding.severity in worst for finding in self.findings)


def apply_rules(
    target: str,
    seen: Snapshot,
    rules: Sequence[Rule] = RULES,
    *,
    heuristics: Iterable[str] = (),
) -> Report:
    """Run `rules` on what was seen. Heuristic rules run only when `heuristics` names them."""
    findings: list[Finding] = []
    checked: list[str] = []
    skipped: list[Skip] = []
    enabled = set(heuristics)
    for rule in rules:
        off = rule.heuristic and rule.id not in enabled
        reason = HEURISTIC if off else _missing(rule, seen)
        if reason is None:
            try:
                found = list(rule.findings(seen))
            except Exception as error:  # noqa: BLE001 - one rule must not take the report with it
                reason = f"the rule itself failed: {type(error).__name__}: {error}"
            else:
                findings.extend(found)
                checked.append(rule.id)
        if reason is not None:
            skipped.append(Skip(rule.id, reason))
    findings.sort(key=lambda f: (SEVERITIES.index(f.severity), order(f.rule)))
    handshake = seen.apps.handshake or {}
    return Report(
        target=target,
        findings=tuple(findings),
        checked=tuple(checked),
        skipped=tuple(skipped),
        summary=_summary(findings),
        notes=(*seen.notes, *_uncalled(seen)),
        failure=_failure(seen),
        server=_server_name(handshake),
        tools=len(seen.tools),
        views=len({tool.link for tool in seen.tools if tool.link}),
    )


def nothing_checked(target: str, why: str, rules: Sequence[Rule] = RULES) -> Report:
    """The report on a server that could not be reached."""
    skipped = tuple(Skip(rule.id, rule.not_checked or why) for rule in rules)
    return Report(target=target, skipped=skipped, failure=why)


def _missing(rule: Rule, seen: Snapshot) -> str | None:
    """Why a rule cannot be checked: there is nothing it could find, or nothing to look at."""
    if rule.not_checked is not None:
        return rule.not_checked
    match rule.surface:
        case "text" | "no_mime" if seen.text is None:
            return seen.text_problem or "the server was not listed as a text-only client"
        case "no_mime" if seen.no_mime is None:
            return seen.no_mime_problem or "the server was not listed without types"
        case "call" | "text_call":
            if seen.calls is None:
                return NEEDS_CALL
            client = "text" if rule.surface == "text_call" else "apps"
            if not any(c.client == client and c.problem is None for c in seen.calls):
                return "no tool was called, or none answered"
        case "browser" if seen.views is None:
            return seen.views_problem or NEEDS_BROWSER
        case "read" if rule.id == "P11" and seen.dev:
            return IN_DEVELOPMENT
        case "tools" if seen.apps.tools_problem is not None and not seen.tools:
            return seen.apps.tools_problem
        case _:
            pass
    return None


def _failure(seen: Snapshot) -> str | None:
    """Why the check is incomplete: the tools could not be listed, or the Views not rendered."""
    if seen.apps.tools_problem is not None and not seen.tools:
        return seen.apps.tools_problem
    return seen.views_problem


def _uncalled(seen: Snapshot) -> Iterator[str]:
    """Which tools were not called, a line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for tool, reason in seen.uncalled:
        by_reason.setdefault(reason, []).append(tool)
    for reason, tools in by_reason.items():
        more = f" and {len(tools) - SHOWN_UNCALLED} more" if len(tools) > SHOWN_UNCALLED else ""
        names = ", ".join(clean(tool, 64) for tool in tools[:SHOWN_UNCALLED])
        yield f"not called: {names}{more} ({reason})"


def _summary(findings: Sequence[Finding]) -> Summary:
    return Summary(**{s: sum(f.severity == s for f in findings) for s in SEVERITIES})


def _server_name(handshake: JsonObject) -> str:
    """The server's name, version and protocol revision, as far as it sent them."""
    stamp = as_object(handshake.get("_meta")).get("io.modelcontextprotocol/serverInfo")
    info = as_object(handshake.get("serverInfo") or stamp)
    protocol = handshake.get("protocolVersion")
    parts = [str(info.get("name") or ""), str(info.get("version") or "")]
    named = " ".join(part for part in parts if part)
    return clean(f"{named} (MCP {protocol})" if protocol else named, 200)
