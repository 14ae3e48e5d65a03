"""rocemu for pytest: a fixture `fabric`, a NIC for each test that asks for it.

    # conftest.py
    pytest_plugins = ["pytest_rocemu"]

    # test_mine.py
    @pytest.mark.rocemu(clock="lockstep", scenario="rtu-lost")
    def test_connects(fabric):
        server = fabric.popen(["my_server"], log=True)
        fabric.wait_listening(7471)
        assert fabric.run(["my_client"]).returncode == 0

The marker takes what rocemu.Fabric takes. Each NIC records. Of a test that fails the recording stays, with
a timeline as a page, in a directory of its own below --rocemu-artifacts (rocemu-failed); of others
nothing stays. Names are those of tests, so that xdist's processes do not meet. What the programs of
fabric.popen(log=True) have printed is a section of the failed test's report, and a file there.

With --rocemu-sanitize, or sanitize=True of the marker, a test fails whose programs use verbs wrongly
(docs/sanitizer.md); its section "rocemu --sanitize" has the reports. A test that expects some takes
them: fabric.take_reports().

With --rocemu-profile NAME, which may be repeated, or all, each test with the fixture runs once with each of these
profiles of NICs (docs/profiles.md). With --rocemu-scenario NAME it runs once with each of these scenarios, which
come with rocemu or are files. A single test names its own:

    @pytest.mark.parametrize("rocemu_scenario", ["rtu-lost", "reject.yaml"])
    def test_connects(fabric): ...

A test that hangs in lockstep, or longer than the Fabric's timeout, fails with what each thread
waits for.
"""
import os
import pathlib
import re
import shutil
import subprocess

import pytest
import rocemu

pytest_plugins = ["rocemu"]  # @pytest.mark.rocemu_explore

_FAILED = pytest.StashKey()
_FABRIC = pytest.StashKey()
_IS_JUDGED = pytest.StashKey()  # by --rocemu-sanitize


def pytest_addoption(parser):
    parser.addoption("--rocemu-artifacts", default="rocemu-failed", metavar="DIR",
                     help="where recordings and timelines of tests that failed stay")
    parser.addoption("--rocemu-sanitize", nargs="?", const=True, default=False, metavar="RULES",
                     help="fail tests whose programs use verbs wrongly, by these rules or the default "
                          "ones (docs/sanitizer.md)")
    parser.addoption("--rocemu-adversarial", nargs="?", const=True, default=False, metavar="CLASSES",
                     help="let the NIC do what the specification allows and NICs seldom do: these classes "
                          "or all (docs/adversarial.md)")
    parser.addoption("--rocemu-seed", type=int, metavar="N",
                     help="what chance chooses, such as the possibilities of --rocemu-adversarial")
    parser.addoption("--rocemu-profile", action="append", default=[], metavar="NAME",
                     help="run each test with the fixture `fabric` once with this profile of a NIC, or with all of "
                          "them: all; may be repeated (docs/profiles.md)")
    parser.addoption("--rocemu-scenario", action="append", default=[], metavar="NAME",
                     help="run each test with the fixture `fabric` once with this scenario, a file or one that comes "
                          "with rocemu; may be repeated")


def pytest_configure(config):
    config.addinivalue_line("markers", "rocemu(...): what rocemu.Fabric of the test's fabric gets")
    for option, what in (("--rocemu-sanitize", "rules"), ("--rocemu-adversarial", "classes")):
        value = config.getoption(option)
        if isinstance(value, str) and os.path.exists(value):
            raise pytest.UsageError(f"{option} takes '{value}' for its {what}; put it behind the paths")


def _profiles(config):
    names = config.getoption("--rocemu-profile")
    if "all" not in names:
        return names
    listed = subprocess.run([rocemu.command(), "profile", "list", "--names"], capture_output=True, text=True,
                            check=True).stdout
    return listed.split()


def pytest_generate_tests(metafunc):
    scenarios = metafunc.config.getoption("--rocemu-scenario")
    for fixture, values in (("rocemu_profile", _profiles(metafunc.config)), ("rocemu_scenario", scenarios)):
        own = [name.strip() for mark in metafunc.definition.iter_markers("parametrize")
               for name in (mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0])]
        if fixture in metafunc.fixturenames and values and fixture not in own:
            metafunc.parametrize(fixture, values)


@pytest.fixture
def rocemu_profile():
    """Returns the profile of the test's NIC, one of those that --rocemu-profile names; None if there are none."""
    return None


@pytest.fixture
def rocemu_scenario():
    """The scenario of the test's NIC, of those that --rocemu-scenario names; None if there are none."""
    return None


def _logs(nic):
    """A name and the output of each program whose output is kept."""
    return [(f"{program.name}-{program.pid}", program.log()) for program in nic._programs if program.has_log]


def _take_reports(nic):
    """Returns the text of the reports that no test has taken, and whether there is an error among them."""
    try:
        reports = nic.take_reports()
    except rocemu.Error as error:  # the NIC has failed, which its end reports
        return str(error), False
    return "\n".join(map(str, reports)), any(one.severity == "error" for one in reports)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    nic = item.stash.get(_FABRIC, None)
    if call.when == "call" and nic is not None and report.failed:
        report.sections += [(f"rocemu: output of {name}", text) for name, text in _logs(nic)]
    if call.when == "call" and item.stash.get(_IS_JUDGED, False):
        text, is_wrong = _take_reports(nic)
        if text:
            report.sections.append(("rocemu --sanitize", text))
        if is_wrong and report.passed:
            report.outcome = "failed"
            report.longrepr = "verbs are used wrongly:\n" + text
    if report.failed:
        item.stash[_FAILED] = True


@pytest.fixture
def fabric(request, rocemu_profile, rocemu_scenario):
    marker = request.node.get_closest_marker("rocemu")
    keywords = dict(marker.kwargs) if marker else {}
    name = re.sub(r"[^\w.-]+", "_", request.node.nodeid).strip("_")
    folder = pathlib.Path(request.config.getoption("--rocemu-artifacts")).absolute() / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    keywords.setdefault("record", folder / "recording")
    if rocemu_profile is not None:
        keywords["profile"] = rocemu_profile
    if rocemu_scenario is not None:
        keywords["scenario"] = rocemu_scenario
    keywords.setdefault("sanitize", request.config.getoption("--rocemu-sanitize"))
    keywords.setdefault("adversarial", request.config.getoption("--rocemu-adversarial"))
    keywords.setdefault("seed", request.config.getoption("--rocemu-seed"))
    nic = rocemu.Fabric(**keywords)
    request.node.stash[_FABRIC] = nic
    request.node.stash[_IS_JUDGED] = bool(keywords["sanitize"])
    is_wrong = False
    try:
        yield nic
    finally:
        failed = request.node.stash.get(_FAILED, False)
        try:
            if failed:
                for log_name, text in _logs(nic):
                    (folder / f"{log_name}.log").write_text(text)
                if nic.recording:
                    nic.timeline(folder / "timeline.html")
            nic.close()
            # Programs that the test has left may break a rule when they end.
            if keywords["sanitize"]:
                text, is_wrong = _take_reports(nic)
        finally:
            if not failed:
                shutil.rmtree(folder)
            try:
                folder.parent.rmdir()  # if nothing stays
            except OSError:
                pass
    if is_wrong:
        pytest.fail("verbs are used wrongly:\n" + text, pytrace=False)
