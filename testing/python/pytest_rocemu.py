"""rocemu for pytest: a fixture `fabric`, a NIC for each test that asks for it.

    # conftest.py
    pytest_plugins = ["pytest_rocemu"]

    # test_mine.py
    @pytest.mark.rocemu(clock="lockstep", scenario="rtu-lost")
    def test_connects(fabric):
        server = fabric.popen(["my_server"])
        fabric.wait_listening(7471)
        assert fabric.run(["my_client"]).returncode == 0

The marker takes what rocemu.Fabric takes. Each NIC records. Of a test that fails the recording stays, with
a timeline as a page, in a directory of its own below --rocemu-artefacts (rocemu-failed); of others
nothing stays. Names are those of tests, so that xdist's processes do not meet.

With --rocemu-sanitize, or sanitize=True of the marker, a test fails whose programs use verbs wrongly
(docs/sanitizer.md); its section "rocemu --sanitize" has the reports. A test that expects some takes
them: fabric.take_reports().

With --rocemu-profile NAME, which may be repeated, or all, each test with the fixture runs once with each of these
profiles of NICs (docs/profiles.md).

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


def pytest_addoption(parser):
    parser.addoption("--rocemu-artefacts", default="rocemu-failed", metavar="DIR",
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
    if "rocemu_profile" in metafunc.fixturenames and _profiles(metafunc.config):
        metafunc.parametrize("rocemu_profile", _profiles(metafunc.config))


@pytest.fixture
def rocemu_profile():
    """Returns the profile of the test's NIC, one of those that --rocemu-profile names; None if there are none."""
    return None


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
    if call.when == "call" and nic is not None:
        text, is_wrong = _take_reports(nic)
        if text:
            report.sections.append(("rocemu --sanitize", text))
        if is_wrong and report.passed:
            report.outcome = "failed"
            report.longrepr = "verbs are used wrongly:\n" + text
    if report.failed:
        item.stash[_FAILED] = True


@pytest.fixture
def fabric(request, rocemu_profile):
    marker = request.node.get_closest_marker("rocemu")
    keywords = dict(marker.kwargs) if marker else {}
    name = re.sub(r"[^\w.-]+", "_", request.node.nodeid).strip("_")
    folder = pathlib.Path(request.config.getoption("--rocemu-artefacts")).absolute() / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    keywords.setdefault("record", folder / "recording")
    if rocemu_profile is not None:
        keywords["profile"] = rocemu_profile
    keywords.setdefault("sanitize", request.config.getoption("--rocemu-sanitize"))
    keywords.setdefault("adversarial", request.config.getoption("--rocemu-adversarial"))
    keywords.setdefault("seed", request.config.getoption("--rocemu-seed"))
    nic = rocemu.Fabric(**keywords)
    if keywords["sanitize"]:
        request.node.stash[_FABRIC] = nic
    is_wrong = False
    try:
        yield nic
    finally:
        failed = request.node.stash.get(_FAILED, False)
        try:
            if failed and nic.recording:
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
