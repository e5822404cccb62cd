"""The page on monitoring, the alert rules and the dashboard: what they name is there, and Prometheus could read it."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from trellis.metrics.table import METRICS, PREFIX, Metric

DOCS = Path(__file__).parents[2] / "docs"
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
LABELS = {
    PREFIX + metric.name + suffix: {*metric.labels, "instance", "job", "le" if suffix == "_bucket" else ""}
    for metric in METRICS
    for suffix in SUFFIXES[metric.kind]
}


def rules() -> list[dict[str, Any]]:
    found = yaml.safe_load((DOCS / "monitoring/alerts.yml").read_text())
    return [rule for group in found["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    found = json.loads((DOCS / "monitoring/dashboard.json").read_text())
    assert isinstance(found, dict)
    return found


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in rules())
    yield from (target["expr"] for panel in dashboard()["panels"] for target in panel["targets"])


@pytest.mark.parametrize("expression", tuple(expressions()))
def test_each_expression_can_be_read_and_asks_for_what_there_is(expression: str) -> None:
    promql_parser.parse(expression.replace("$instance", ".*"))
    selectors = re.findall(r"\b(trellis_\w+)(?:\{([^}]*)\})?", expression)
    assert selectors or expression.startswith("up{")
    for name, filters in selectors:
        assert name in LABELS
        assert set(re.findall(r"(\w+)\s*=", filters)) <= LABELS[name]
    for labels in re.findall(r"\bby \(([\w, ]+)\)", expression):
        assert {label.strip() for label in labels.split(",")} <= set().union(*(LABELS[name] for name, _ in selectors))


def test_promtool_takes_the_rules_and_they_fire_when_they_should(tmp_path: Path) -> None:
    """By Prometheus's own tool, where it is installed: it is no Python package, and no check may need another."""
    if (promtool := shutil.which("promtool")) is None:
        pytest.skip("promtool, which is in Debian's package prometheus, is not on the PATH")
    file = DOCS / "monitoring/alerts.yml"

    def run(*arguments: object) -> None:
        done = subprocess.run([promtool, *map(str, arguments)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    run("check", "rules", file)
    series = {
        'up{job="trellis",instance="a"}': "0x30",
        'trellis_database_up{instance="b"}': "0x30",
        'trellis_workers{instance="c"}': "2x30",
        'trellis_workers_ready{instance="c"}': "1x30",
        'trellis_requests_total{instance="d",operation="forums.list",status="2xx"}': "0+95x30",
        'trellis_requests_total{instance="d",operation="forums.list",status="5xx"}': "0+5x30",
        'trellis_webhook_lag_seconds{instance="e",webhook="7"}': "901x30",
    }
    firing = {
        "TrellisDown": "a",
        "TrellisDatabaseAway": "b",
        "TrellisNotReady": "c",
        "TrellisFails": "d",
        "TrellisWebhookBehind": "e",
    }
    told = [{"eval_time": "20m", "alertname": rule["alert"], "exp_alerts": []} for rule in rules() if rule["alert"] not in firing]
    for rule in rules():
        if instance := firing.get(rule["alert"]):
            labels = {"instance": instance, **rule["labels"]} | ({"job": "trellis"} if instance == "a" else {})
            labels |= {"webhook": "7"} if instance == "e" else {}
            texts = {
                name: re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: labels[found[1]], text)  # noqa: B023  # used at once
                for name, text in rule["annotations"].items()
            }
            alert = {"exp_labels": labels, "exp_annotations": texts}
            told.append({"eval_time": "20m", "alertname": rule["alert"], "exp_alerts": [alert]})
    inputs = [{"series": name, "values": values} for name, values in series.items()]
    test = {"rule_files": [str(file)], "tests": [{"interval": "1m", "input_series": inputs, "alert_rule_test": told}]}
    (tmp_path / "test.yml").write_text(json.dumps(test))
    run("test", "rules", tmp_path / "test.yml")


def test_each_rule_says_what_is_wrong_and_what_to_do() -> None:
    assert len({rule["alert"] for rule in rules()}) == len(rules())
    for rule in rules():
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["annotations"]["action"].endswith(".")


def test_the_panels_of_the_dashboard_do_not_lie_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert max(x for x, _ in cells) < 24
        assert taken.isdisjoint(cells)
        taken |= cells


def test_the_page_lists_every_metric() -> None:
    def describe(metric: Metric) -> str:
        labels = ", ".join(f"`{label}`" for label in metric.labels) or "–"
        return f"| `{PREFIX}{metric.name}{SUFFIXES[metric.kind][0]}` | {metric.kind} | {labels} | {metric.doc} |"

    page = (DOCS / "monitoring.md").read_text()
    listed = page.partition("<!-- metrics: start -->\n")[2].partition("<!-- metrics: end -->")[0].splitlines()
    assert listed[2:] == [describe(metric) for metric in METRICS]
