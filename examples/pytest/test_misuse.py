"""Tests that a program uses verbs as their manual pages say. Reports are values. A report of severity error, if
the test does not take it, makes the test fail."""
import pingpong
import pytest


@pytest.mark.rocemu(sanitize=True)
def test_uses_verbs_rightly(fabric):
    assert pingpong.run(fabric)[0] == 0
    assert [one for one in fabric.reports() if one.severity == "error"] == []


@pytest.mark.rocemu(sanitize="refused-limit")
def test_asks_for_more_completions_than_the_device_allows(fabric):
    assert fabric.run(["ibv_rc_pingpong", "-g", "0", "-r", "100000000"]).returncode != 0
    report, = fabric.take_reports()
    assert (report.rule, report.severity) == ("refused-limit", "warning")
    assert "cqe = 100000001 of rocemu" in report.message
    assert report.places[-1].call == "ibv_create_cq"
