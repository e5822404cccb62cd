"""A flame graph: each function upon its caller, as wide as its share of the time."""

import re
from xml.etree import ElementTree as ET

from bench.flame_graph import draw_flames, parse_stacks

_FOLDED = """\
main (/src/trellis/__main__.py);Runner.run (runners.py);answer (/x/src/trellis/http/api.py);send (/x/site-packages/uvicorn/a.py) 30
main (/src/trellis/__main__.py);Runner.run (runners.py);answer (/x/src/trellis/http/api.py) 45
Thread.run (threading.py);commit <all> (/x/src/trellis/store/writer.py) 25
Thread.run (threading.py);EpollSelector.select (selectors.py) 900
"""


def test_each_function_is_as_wide_as_its_share_and_stands_on_its_caller() -> None:
    picture = ET.fromstring(draw_flames("create", parse_stacks(_FOLDED), 200.0))  # noqa: S314  # it is our own
    boxes = {}
    for group in picture.iter("{http://www.w3.org/2000/svg}g"):
        title, rect, label = group
        boxes[(title.text or "").partition(" (")[0]] = (title.text, rect.attrib, label.text)
    assert set(boxes) == {"answer", "send", "commit <all>"}, "without what starts the program, and what waits"
    assert boxes["answer"][0] == "answer (trellis/http/api.py): 75.0%, 150.0 µs"
    widths = {name: float(rect["width"]) for name, (_, rect, _) in boxes.items()}
    assert (widths["answer"], widths["send"], widths["commit <all>"]) == (900.0, 360.0, 300.0)
    assert float(boxes["send"][1]["y"]) < float(boxes["answer"][1]["y"])
    assert boxes["send"][1]["x"] == boxes["answer"][1]["x"]
    assert len({rect["fill"] for _, rect, _ in boxes.values()}) == 3
    assert "create: 200 µs of the processor each" in " ".join(picture.itertext())


def test_the_narrowest_are_left_out_and_labels_fit() -> None:
    stacks = parse_stacks("a_function_with_a_long_name (a.py) 20\nwide (b.py) 979\nalmost_never (c.py) 1\n")
    drawn = draw_flames("read", stacks, 10.0)
    assert "almost_never" not in drawn
    assert re.findall(r"<text[^>]*>([^<]*)</text></g>", drawn) == ["wide", ""]
