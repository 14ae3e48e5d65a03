"""rocemu for pytest: a fixture `fabric`, a NIC for each test that asks for it.

    # conftest.py
    pytest_plugins = ["pytest_rocemu"]

    # test_mine.py
    @pytest.mark.rocemu(clock="virtual", scenario="rtu-lost")
    def test_connects(fabric):
        server = fabric.popen(["my_server"])
        fabric.wait_listening(7471)
        assert fabric.run(["my_client"]).returncode == 0

The marker takes what rocemu.Fabric takes. Each NIC records. Of a test that fails the recording stays, with
a timeline as a page, in a directory of its own below --rocemu-artefacts (rocemu-failed); of others
nothing stays. Names are those of tests, so that xdist's processes do not meet.

A test that hangs on the virtual clock, or longer than the Fabric's timeout, fails with what each thread
waits for.
"""
import pathlib
import re
import shutil

import pytest
import rocemu

pytest_plugins = ["rocemu"]  # @pytest.mark.rocemu_explore

_FAILED = pytest.StashKey()


def pytest_addoption(parser):
    parser.addoption("--rocemu-artefacts", default="rocemu-failed", metavar="DIR",
                     help="where recordings and timelines of tests that failed stay")


def pytest_configure(config):
    config.addinivalue_line("markers", "rocemu(...): what rocemu.Fabric of the test's fabric gets")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    if report.failed:
        item.stash[_FAILED] = True


@pytest.fixture
def fabric(request):
    marker = request.node.get_closest_marker("rocemu")
    keywords = dict(marker.kwargs) if marker else {}
    name = re.sub(r"[^\w.-]+", "_", request.node.nodeid).strip("_")
    folder = pathlib.Path(request.config.getoption("--rocemu-artefacts")).absolute() / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    keywords.setdefault("record", folder / "recording")
    nic = rocemu.Fabric(**keywords)
    try:
        yield nic
    finally:
        failed = request.node.stash.get(_FAILED, False)
        try:
            if failed and nic.recording:
                nic.timeline(folder / "timeline.html")
            nic.close()
        finally:
            if not failed:
                shutil.rmtree(folder)
            try:
                folder.parent.rmdir()  # if nothing stays
            except OSError:
                pass
