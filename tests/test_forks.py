"""`--forks`: what a test did in a copy of the process is told as if it had run in it."""

from typing import Protocol

import pytest

pytestmark = pytest.mark.processes


class Run(Protocol):
    def __call__(self, text: str, *words: str) -> pytest.RunResult: ...


@pytest.fixture
def run(pytester: pytest.Pytester, request: pytest.FixtureRequest) -> Run:
    pytester.makepyprojecttoml(
        f"[tool.pytest.ini_options]\npythonpath = ['{request.config.rootpath}']"
    )

    def run(text: str, *words: str) -> pytest.RunResult:
        pytester.makepyfile(text)
        return pytester.runpytest_subprocess("-p", "tests.forks", "--forks", "3", *words)

    return run


def test_every_test_runs_once_and_failures_say_why(run: Run, pytester: pytest.Pytester) -> None:
    result = run("""
        import os, pytest
        @pytest.mark.parametrize("n", range(100))
        def test_one(n, tmp_path):
            with open("ran", "a") as file:
                file.write(f"{n}\\n")
            (tmp_path / "mine").write_text("")
            print(f"printed by {n}")
            assert n != 57
        @pytest.mark.skip(reason="not today")
        def test_two(): pass
        @pytest.fixture
        def broken(): raise ValueError("no fixture")
        def test_three(broken): pass
    """)
    result.assert_outcomes(passed=99, failed=1, skipped=1, errors=1)
    result.stdout.fnmatch_lines(["*assert 57 != 57*", "printed by 57"])
    assert "printed by 56" not in result.stdout.str()
    ran = (pytester.path / "ran").read_text().split()
    assert sorted(map(int, ran)) == list(range(100))


def test_a_stream_from_before_the_copy_is_still_good(run: Run) -> None:
    result = run("""
        import sys
        ERRORS = sys.stderr  # as the default value of an argument has it
        def test_one():
            print("printed by one", file=ERRORS)
            assert 0
        def test_two(): ERRORS.fileno()
    """)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["printed by one"])


def test_a_test_that_takes_too_long_says_so(run: Run) -> None:
    result = run("""
        import pytest, threading
        @pytest.mark.timeout(1, method="signal")
        def test_it():
            threading.Thread(target=threading.Event().wait, daemon=True).start()
            threading.Event().wait()
    """)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Timeout (>1.0s)*", "*Stack of Thread*"])


def test_the_first_failure_ends_it_if_asked(run: Run) -> None:
    result = run(
        """
        import pytest
        @pytest.mark.parametrize("n", range(2000))
        def test_it(n): assert n
        """,
        "-x",
    )
    assert result.parseoutcomes()["failed"] == 1
    assert result.parseoutcomes().get("passed", 0) < 1999


def test_a_test_that_ends_its_process_has_failed_and_the_others_run(
    run: Run, pytester: pytest.Pytester
) -> None:
    result = run("""
        import os, pytest
        @pytest.mark.parametrize("n", range(100))
        def test_it(n):
            with open("ran", "a") as file:
                file.write(f"{n}\\n")
            if n == 7:
                os._exit(9)
    """)
    result.assert_outcomes(passed=99, failed=1)
    result.stdout.fnmatch_lines(["*test_it?7?*", "The test ended its process (9)."])
    assert sorted(map(int, (pytester.path / "ran").read_text().split())) == list(range(100))


def test_a_test_that_goes_on_after_its_time_is_ended_and_the_others_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORKS_GRACE", "1")
    result = run("""
        import contextlib, pytest, threading
        @pytest.mark.parametrize("n", range(20))
        @pytest.mark.timeout(1, method="signal")
        def test_it(n):
            while n == 7:
                with contextlib.suppress(BaseException):
                    threading.Event().wait()
    """)
    result.assert_outcomes(passed=19, failed=1)
    result.stdout.fnmatch_lines(["The test went on after its time was over.", "*in test_it*"])
