"""The launcher with small commands: status, report, prefixes, variables, and nothing left behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from dualmx.core.errors import ArgumentError
from dualmx.launch import guard
from dualmx.launch.cli import main, variables
from dualmx.launch.plan import JobPlan
from dualmx.launch.process import JobMember
from dualmx.launch.restart import RestartPolicy
from tests import jobs
from tests.jobs import LAUNCH, PYTHON, alive, wait_for

SLOW = pytest.mark.slow


def launch(*arguments: str, code: str, **env: str) -> jobs.Done:
    return jobs.run(*LAUNCH, *arguments, PYTHON, "-S", "-c", code, env=env, status=None, seconds=60)


@pytest.mark.slow
def test_everyone_gets_role_rank_secret_and_variables() -> None:
    code = (
        "import os; e = os.environ; print(e['DMLC_ROLE'], e['DMLC_TASK_ID'], e['DMLC_NUM_WORKER'],"
        " e['DMLC_NUM_SERVER'], len(e['DUALMX_SECRET']), e.get('A'), e.get('B'), e.get('C'), e.get('PORT'),"
        " e.get('DMLC_PS_VAN_TYPE'), e['DUALMX_ON_WORKER_DEATH'])"
    )
    done = launch(
        "-n", "2", "-s", "1", "--p3", "--env", "A:x:y", "--env-server", "B=1", "--env", "C", code=code, C="c", PORT="9",
        DUALMX_ON_WORKER_DEATH="wait",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "[scheduler] scheduler 0 2 1 64 x:y None c None p3 wait",
        "[server 0] server 0 2 1 64 x:y 1 c None p3 wait",
        "[worker 0] worker 0 2 1 64 x:y None c None p3 wait",
        "[worker 1] worker 1 2 1 64 x:y None c None p3 wait",
    ]


@pytest.mark.slow
def test_the_first_failure_decides_and_is_reported(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys, time\n"
        "me = os.environ['DMLC_ROLE'] + os.environ['DMLC_TASK_ID']\n"
        "file = pathlib.Path(os.environ['FOLDER'], 'worker1')\n"
        "def there(pid):\n"
        "    try: os.kill(pid, 0); return True\n"
        "    except ProcessLookupError: return False\n"
        "if me == 'worker1':\n"
        "    print('last words', file=sys.stderr)\n"
        "    part = file.with_suffix('.part'); part.write_text(str(os.getpid())); part.rename(file)\n"
        "    sys.exit(7)\n"
        "if me == 'worker0':\n"
        "    while not file.exists() or there(int(file.read_text())): time.sleep(0.02)\n"
        "    sys.exit(3)\n"
    )
    done = launch("-n", "2", "-s", "1", code=code, FOLDER=str(tmp_path))
    assert done.returncode == 7
    report = done.stderr[done.stderr.index("-----") :]
    assert "the job failed: worker 1 (process " in report and "exited with status 7 after" in report
    assert "last lines of worker 1:\n    last words" in report
    assert "worker 0, which exited with status 3" in report


@pytest.mark.slow
def test_a_signal_gives_its_status_and_the_rest_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import os, signal, time\n"
        "if os.environ['DMLC_ROLE'] == 'worker': os.kill(os.getpid(), signal.SIGKILL)\n"
        "time.sleep(0.5)\n"
    )
    done = launch("-n", "1", "-s", "1", code=code)
    assert done.returncode == 137
    assert "worker 0 (process" in done.stderr and "was killed by signal 9 (SIGKILL)" in done.stderr


@pytest.mark.parametrize(
    "options, program, text",
    [
        ([], "absent", "there is no program 'absent' here, in PATH="),
        pytest.param([], "./absent", "the program './absent' does not exist here, in ", marks=SLOW),
        pytest.param([], "plain", "the program '{folder}/plain' cannot be executed here", marks=SLOW),
        pytest.param(
            ["--env-worker", "PATH:/none"], "touch", "there is no program 'touch' here, in PATH=/none", marks=SLOW
        ),
    ],
)
def test_a_missing_program_ends_the_launcher_before_anything_is_started(tmp_path, options, program, text) -> None:
    (tmp_path / "plain").touch(0o600)
    command = str(tmp_path / program) if program == "plain" else program
    done = jobs.run(*LAUNCH, "-n", 1, "-s", 1, *options, command, tmp_path / "started", status=2)
    assert text.format(folder=tmp_path) in done.stderr
    assert not (tmp_path / "started").exists() and "exited" not in done.stderr


def _limited(soft: int, hard: int, *arguments: str) -> jobs.Done:
    """Run the launcher where so many files may be open."""
    code = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))\n"
    code += "import runpy, sys; sys.argv[0] = 'dualmx-launch'; runpy.run_module('dualmx.launch', run_name='__main__')"
    return jobs.run(PYTHON, "-c", code, *arguments, status=None, seconds=60)


@pytest.mark.slow
def test_the_limit_of_open_files_is_raised_as_far_as_it_may_be() -> None:
    show = "import os, resource; os.environ['DMLC_ROLE'] == 'worker' and print(resource.getrlimit(7))"
    done = _limited(100, 500, "-n", "1", "-s", "1", "--launcher", "local", sys.executable, "-S", "-c", show)
    assert (done.returncode, done.stdout) == (0, "[worker 0] (500, 500)\n"), done.stderr


@pytest.mark.slow
def test_too_low_a_limit_of_open_files_is_named_before_anything_is_started() -> None:
    arguments = ("-n", "100", "-s", "2", "--launcher", "local", sys.executable, "-S", "-c", "print('started')")
    done = _limited(100, 280, *arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert "nothing was started: the launcher, with up to 3 pipes to each of 103 processes" in done.stderr
    assert "a process may have 280. Raise the hard limit, which is 280 (ulimit -Hn" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_job_is_started_again_as_often_as_asked(tmp_path: Path) -> None:
    code = f"import os, sys; sys.exit(0 if os.environ['DMLC_NUM_ATTEMPT'] == '1' else 5)  # {tmp_path}"
    assert launch("-n", "1", code=code, DMLC_NUM_ATTEMPT="2").returncode == 0
    assert launch("-n", "1", code=code).returncode == 5


def hasty(*arguments: str, code: str, **env: str) -> jobs.Done:
    """As `launch`, by a launcher that waits half a second where others wait for ten."""
    run = (
        "import sys; from dualmx.launch import supervisor; supervisor.END_SECONDS = 0.5\n"
        "from dualmx.launch.cli import main\n"
    )
    command = [PYTHON, "-c", run + "sys.exit(main())", *arguments, PYTHON, "-S", "-c", code]
    return jobs.run(*command, env=env, status=None, seconds=60)


@pytest.mark.slow
def test_the_only_worker_has_all_the_time_after_it_was_started_again(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys, time\n"
        "me = pathlib.Path(os.environ['FOLDER'], os.environ['DMLC_ROLE'])\n"
        "if me.name != 'worker': sys.exit()\n"
        "with open(me, 'a') as f: f.write('x')\n"
        "life = len(me.read_text())\n"
        "time.sleep(life - 1)\n"
        "if life < 3: sys.exit(3)\n"
        "me.write_text('done')\n"
    )
    done = hasty("-n", "1", "-s", "1", "--on-worker-death", "wait", code=code, FOLDER=str(tmp_path))
    assert done.returncode == 0 and (tmp_path / "worker").read_text() == "done", done.stderr


@pytest.mark.slow
def test_the_last_lines_are_printed_although_they_are_read_late() -> None:
    run = (
        "import sys, time; from dualmx.launch import process; copy = process.Process._copy\n"
        "process.Process._copy = lambda *args: (time.sleep(0.5), copy(*args))\n"
        "from dualmx.launch.cli import main; sys.exit(main())"
    )
    done = jobs.run(PYTHON, "-c", run, "-n", 1, "-s", 1, PYTHON, "-S", "-c", "print('a line')")
    who = ("scheduler", "server 0", "worker 0")
    assert sorted(done.stdout.splitlines()) == [f"[{name}] a line" for name in who]


@pytest.mark.slow
def test_a_job_whose_workers_never_come_far_fails() -> None:
    code = "import os, sys, time; time.sleep(0.8); sys.exit(7 if os.environ['DMLC_ROLE'] == 'worker' else 0)"
    done = hasty("-n", "1", "-s", "1", "--on-worker-death", "elastic", "--restarts", "2", code=code)
    assert done.returncode == 7 and done.stderr.count("is started again") == 2, done.stderr
    assert "worker 0 exited with status 7" in done.stderr


SLEEPERS = (
    "import os, pathlib, subprocess, sys, time\n"
    "child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'])\n"
    "folder = pathlib.Path(os.environ['FOLDER'])\n"
    "for pid in (os.getpid(), child.pid): (folder / str(pid)).touch()\n"
    "time.sleep(600)\n"
)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda n: n.name)
def test_no_process_outlives_the_launcher(number: signal.Signals, tmp_path: Path) -> None:
    """Not even the children of its children, and not even if it is killed outright."""
    command = [*LAUNCH, "-n", 2, "-s", 1, PYTHON, "-S", "-c", SLEEPERS]
    with jobs.running(*command, env={"FOLDER": str(tmp_path)}) as launcher:
        wait_for(lambda: len(list(tmp_path.iterdir())) == 8)
        pids = [int(p.name) for p in tmp_path.iterdir()]
        assert all(map(alive, pids))
        launcher.send_signal(number)
        assert launcher.wait(20) == (-9 if number == signal.SIGKILL else 128 + number)
        wait_for(lambda: not any(map(alive, pids)))


NO_KEEPER = (
    "import sys; from dualmx.launch import process; process.ProcessKeeper.tell = lambda self, sign, pid: None\n"
    "from dualmx.launch.cli import main; sys.exit(main())"
)


@pytest.mark.slow
def test_control_without_the_keeper_children_of_children_are_left(tmp_path: Path) -> None:
    command = [PYTHON, "-c", NO_KEEPER, "-n", 1, "-s", 1, PYTHON, "-S", "-c", SLEEPERS]
    launcher = jobs.start(*command, env={"FOLDER": str(tmp_path)})
    pids: list[int] = []
    try:
        wait_for(lambda: len(list(tmp_path.iterdir())) == 6)
        pids = [int(p.name) for p in tmp_path.iterdir()]
        launcher.kill()
        launcher.wait(20)
        wait_for(lambda: sum(map(alive, pids)) <= 3)  # those that it started itself
        time.sleep(1.5)
        assert sum(map(alive, pids)) == 3
    finally:
        jobs.end(launcher)
        for pid in pids:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.skipif(not guard.defaults(), reason="an older C library, or another one")
def test_children_get_huge_pages_unless_the_user_decides(tmp_path: Path) -> None:
    code = "import os; print(os.environ['GLIBC_TUNABLES'])"
    for given, seen in (
        ({}, "glibc.malloc.hugetlb=1"),
        ({"GLIBC_TUNABLES": "a.b=c"}, "a.b=c"),
        ({"GLIBC_TUNABLES": ""}, ""),
    ):
        env = {"GLIBC_TUNABLES": None, **given}
        done = jobs.run(*LAUNCH, "-n", 1, "-s", 1, PYTHON, "-S", "-c", code, env=env)
        assert sorted(done.stdout.splitlines()) == [f"[{who}] {seen}" for who in ("scheduler", "server 0", "worker 0")]


def test_variables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERE", "1")
    assert variables(["A:b=c", "D=e:f", "HERE"]) == {"A": "b=c", "D": "e:f", "HERE": "1"}
    with pytest.raises(ArgumentError, match="--env ABSENT"):
        variables(["ABSENT"])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["-n", "1"], "expected a command"),
        (["-n", "0", "true"], "at least one worker"),
        (["-n", "1", "--port", "70000", "true"], "expected 1 to 65535"),
        (["-n", "1", "--launcher", "local", "-H", "hosts", "true"], "several hosts"),
        (["-n", "1", "--env", "ABSENT_VARIABLE", "true"], "not set here"),
        (["-n", "1", "--env", "=x", "true"], "--env '=x': expected NAME:VALUE"),
        (["-n", "1", "--env", "A B:x", "true"], "--env 'A B:x': expected NAME:VALUE"),
        (["-n", "1", "--restarts", "-3", "true"], "--restarts -3: expected 0 or more"),
        (["-n", "2", "-s", "0", "--min-np", "3", "true"], "between the least and the greatest"),
        (["-n", "4", "-s", "0", "--max-np", "3", "true"], "between the least and the greatest"),
        (["-n", "4", "--min-np", "3", "true"], "go with -s 0 and --on-worker-death elastic"),
        (["-n", "4", "-s", "0", "--min-np", "3", "--on-worker-death", "wait", "true"], "go with -s 0"),
    ],
)
def test_bad_command_lines(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == 2 and text in capsys.readouterr().err


def test_a_command_line_in_quotes_is_for_the_shell() -> None:
    """As with MXNet's launcher: variables of the process, and several commands."""
    line = 'cd / && echo "$DMLC_ROLE $DMLC_TASK_ID in $PWD" && test "$DMLC_ROLE" != worker || exit 42'
    done = jobs.run(*LAUNCH, "-n", 2, "-s", 0, line, status=42)
    assert {f"[worker {r}] worker {r} in /" for r in (0, 1)} <= set(done.stdout.splitlines())


@pytest.mark.parametrize(("given", "chosen"), [([], "ssh"), (["--launcher", "mpi"], "mpi")])
def test_a_host_file_means_ssh_unless_something_else_is_said(
    given: list[str], chosen: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hosts").write_text("127.0.0.1\n")
    arguments = ["-n", "1", "-s", "1", "-H", str(tmp_path / "hosts"), *given, "--dry-run", "true"]
    monkeypatch.delenv("DMLC_SUBMIT_CLUSTER", raising=False)
    assert main(arguments) == 0 and f"DMLC_JOB_CLUSTER={chosen} " in capsys.readouterr().out
    if not given:
        monkeypatch.setenv("DMLC_SUBMIT_CLUSTER", "mpi")
        assert main(arguments) == 0 and "DMLC_JOB_CLUSTER=mpi " in capsys.readouterr().out


def settled(
    policy: str, workers: list[int | None], scheduler: int | None, again: bool, later: float = 0.0
) -> tuple[RestartPolicy, JobMember]:
    """What became of worker 1, which has failed: whether it had been started `again`, how much `later` it ended."""
    returns = RestartPolicy(JobPlan(["true"], len(workers) + 1, 0, policy={"worker": policy}, restarts=3))
    failed = JobMember("worker", 1)
    failed.code = 1
    if again:
        returns._restarted.add(failed)
    others = [JobMember("worker", 2 + k) for k in range(len(workers))]
    first = JobMember("scheduler", 0)
    for member, code in zip([*others, first], [*workers, scheduler], strict=True):
        member.code, member.ended = code, 3.0
    failed.ended = failed.begun - first.begun + 3.0 + later
    returns.decide([failed], [failed, *others, first])
    returns.close()
    return returns, failed


@pytest.mark.parametrize(
    ("policy", "later", "forgiven"), [("elastic", 9.0, True), ("elastic", 0.0, False), ("fail", 9.0, False)]
)
def test_an_elastic_job_does_not_fail_for_a_worker_that_woke_when_it_was_over(
    policy: str, later: float, forgiven: bool
) -> None:
    """Seed 674: the job had gone on without it, and the scheduler, which waits for all others, had ended."""
    returns, failed = settled(policy, [0, 0], 0, again=False, later=later)
    assert returns.tolerates(failed) == forgiven and not returns.pending


def test_who_is_started_again_when_the_others_have_finished_needs_no_place() -> None:
    for policy, workers, scheduler, again, forgiven, pending in [
        ("elastic", [0, None], None, True, True, True),  # others are at work
        ("elastic", [0, 0], 0, True, True, False),  # came too late
        ("elastic", [0, 0], 0, False, False, False),  # failed at its end, like anybody
        ("elastic", [0, 0], -9, True, True, True),
        ("wait", [0, 0], 0, True, True, False),
        ("wait", [0, None], None, True, True, True),
        ("fail", [0, 0], 0, True, False, False),
    ]:
        returns, failed = settled(policy, workers, scheduler, again)
        assert (returns.tolerates(failed), returns.pending) == (forgiven, pending), (policy, workers, scheduler, again)
