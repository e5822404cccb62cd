"""Blogs over REST: read and deleted there, made and changed elsewhere."""

from typing import Final

from tests.api_client import ApiClient, read_refusal
from tests.community import Community
from tests.fixture_types import MakeKey, Run

DIARY: Final = {"name": "Diary", "owner": "Ada Berg", "pinned": True, "externalId": "diary"}


def test_blogs_are_read_like_all_other_nodes(api: ApiClient, community: Community, run: Run) -> None:
    diary = run("blogs.create", **DIARY)["id"]
    listed = api.get("/blog/blogs").json()
    assert (listed["totalResults"], [one["name"] for one in listed["results"]]) == (2, ["Notebook", "Diary"])
    found = api.get(f"/blog/blogs/{diary}")
    assert found.json() == listed["results"][1] == api.get("/blog/blogs/external/diary").json()
    assert {name: found.json()[name] for name in DIARY} == DIARY
    assert (found.json()["groups"], found.json()["description"]) == ("*", "")
    for query, names in (
        ("sortBy=name", ["Diary", "Notebook"]),
        ("sortBy=id&sortDir=desc", ["Diary", "Notebook"]),
        (f"ids={community.notebook}", ["Notebook"]),
        ("search=IAR", ["Diary"]),
        ("name=Diary", ["Diary"]),
        ("externalIds=diary", ["Diary"]),
        ("perPage=1&page=2", ["Diary"]),
        ("updatedSince=2099-01-01T00:00:00Z", []),
    ):
        assert [one["name"] for one in api.get(f"/blog/blogs?{query}").json()["results"]] == names, query
    for query in ("parentId=root", "type=questions", "include=childCount"):
        assert api.get(f"/blog/blogs?{query}").status_code == 400, query
    tag = found.headers["etag"]
    assert api.get(f"/blog/blogs/{diary}", headers={"If-None-Match": tag}).status_code == 304
    run("blogs.update", diary, owner="Bo Lind")
    assert api.get(f"/blog/blogs/{diary}", headers={"If-None-Match": tag}).json()["owner"] == "Bo Lind"
    assert api.get("/blog/blogs?ids=2").json()["results"][0]["owner"] == "Bo Lind"


def test_each_way_to_read_blogs_needs_its_grant(api: ApiClient, community: Community, key: MakeKey) -> None:
    paths = {"blogs.list": "/blog/blogs", "blogs.get": f"/blog/blogs/{community.notebook}"}
    for grant in (*paths, "blogs.delete"):
        text = key(grant)
        for name, path in paths.items():
            answer = api.get(path, key=text)
            if name == grant:
                assert answer.status_code == 200
            else:
                assert read_refusal(answer, 403, "NO_PERMISSION")["missingOperation"] == name
