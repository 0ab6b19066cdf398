"""The client library oehrpy, as it is, through its whole round: `python oehrpy_round.py BASE FOLDER`.

BASE is the address in front of /rest/openehr/v1, FOLDER holds templates/ and compositions.ndjson. Each of the library's clients
(of the specification, and of two servers) goes the same way. What it does is printed; anything unexpected ends it.
"""

import asyncio
import copy
import json
import sys
import uuid
from pathlib import Path

from oehrpy.client import (
    ContributionBuilder,
    EHRBaseClient,
    FerroEHRClient,
    NotFoundError,
    OpenEHRClient,
    OpenEHRError,
    PreconditionFailedError,
    ValidationError,
)

MISSING = "00000000-0000-4000-8000-00000000dead"
AQL = "SELECT c/uid/value AS uid, c/name/value AS name FROM EHR e CONTAINS COMPOSITION c"


async def refused(kind, awaitable):
    """What must fail fails as the library tells it."""
    try:
        result = await awaitable
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}, got {result!r}")


async def templates(client, folder):
    """Uploads every template; gives the id of the first."""
    known = {entry.template_id for entry in await client.list_templates()}
    first = None
    for path in sorted((folder / "templates").iterdir()):
        text = path.read_text()
        try:
            uploaded = (await client.upload_template(text)).template_id
        except ValidationError as error:
            assert error.status_code == 409, error
            continue
        first = first or uploaded
        assert await client.get_template_opt(uploaded) == text, uploaded
        await refused(ValidationError, client.upload_template(text))
    listed = {entry.template_id: entry for entry in await client.list_templates()}
    assert listed and known <= set(listed)
    first = first or sorted(listed)[0]
    assert listed[first].concept and listed[first].created_timestamp
    for level in ("required", "medium", "complete"):
        example = await client.get_template_example(first, detail_level=level, format="CANONICAL")
        assert example["_type"] == "COMPOSITION", example
    await refused(NotFoundError, client.get_template_opt("no such template"))
    await refused(ValidationError, client.upload_template("<template/>"))
    return first


async def ehrs(client):
    """Creates EHRs in each way; gives the id of one."""
    made = await client.create_ehr()
    assert made.ehr_id and made.system_id and made.time_created
    own = str(uuid.uuid4())
    assert (await client.create_ehr(ehr_id=own)).ehr_id == own
    await refused(ValidationError, client.create_ehr(ehr_id=own))
    subject = f"patient-{own}"
    of_subject = await client.create_ehr(subject_id=subject, subject_namespace="hospital")
    found = await client.get_ehr_by_subject(subject, "hospital")
    assert found.ehr_id == of_subject.ehr_id
    await refused(ValidationError, client.create_ehr(subject_id=subject, subject_namespace="hospital"))
    assert (await client.get_ehr(own)).ehr_id == own
    await refused(NotFoundError, client.get_ehr(MISSING))
    await refused(NotFoundError, client.get_ehr_by_subject("nobody", "hospital"))
    return own


async def statuses(client, ehr_id):
    """Changes an EHR_STATUS under its version."""
    status = await client.get_ehr_status(ehr_id)
    before = status["uid"]["value"]
    status["is_queryable"] = True
    status["other_details"] = {
        "_type": "ITEM_TREE",
        "archetype_node_id": "at0001",
        "name": {"_type": "DV_TEXT", "value": "Tree"},
        "items": [],
    }
    updated = await client.update_ehr_status(ehr_id, before, status)
    assert updated["uid"]["value"].endswith("::2"), updated
    await refused(PreconditionFailedError, client.update_ehr_status(ehr_id, before, status))
    assert (await client.get_ehr_status(ehr_id))["uid"] == updated["uid"]


async def compositions(client, ehr_id, composition):
    """A canonical composition in its versions."""
    made = await client.create_composition(ehr_id, composition, format="CANONICAL")
    assert made.uid.endswith("::1") and made.composition["content"] == composition["content"]
    vessel = made.uid.split("::")[0]
    got = await client.get_composition(ehr_id, made.uid)
    assert got.composition["content"] == composition["content"] and got.template_id
    assert (await client.get_composition(ehr_id, vessel)).uid == made.uid
    changed = copy.deepcopy(composition)
    changed["composer"] = {"_type": "PARTY_IDENTIFIED", "name": "Dr. Li"}
    updated = await client.update_composition(ehr_id, vessel, made.uid, changed, format="CANONICAL")
    assert updated.uid.endswith("::2") and updated.composition["composer"]["name"] == "Dr. Li"
    await refused(PreconditionFailedError, client.update_composition(ehr_id, vessel, made.uid, changed, format="CANONICAL"))
    holder = await client.get_versioned_composition(ehr_id, vessel)
    assert holder.uid == vessel and holder.time_created
    version = await client.get_composition_version(ehr_id, vessel, made.uid)
    assert version.version_uid == made.uid and version.lifecycle_state == "complete" and version.preceding_version_uid is None
    at = version.commit_audit["time_committed"]["value"]
    assert (await client.get_composition_at_time(ehr_id, vessel, at)).uid == made.uid
    await client.list_composition_versions(ehr_id, vessel)
    await refused(NotFoundError, client.get_composition(ehr_id, MISSING))
    broken = {key: value for key, value in composition.items() if key != "category"}
    error = await refused(ValidationError, client.create_composition(ehr_id, broken, format="CANONICAL"))
    assert "category" in json.dumps(error.response)
    # The library cuts the version off the uid; the specification wants it, as the guard against a change in between.
    error = await refused(ValidationError, client.delete_composition(ehr_id, updated.uid))
    assert error.status_code == 400
    return updated.uid


async def contributions(client, ehr_id, composition, latest):
    """Several changes in one commit, then a deletion."""
    builder = ContributionBuilder(system_id="oehrpy").add_creation(composition).add_amendment(latest, composition, description="checked")
    body = builder.set_audit(committer="Dr. Ek", description="both at once").build()
    made = await client.create_contribution(ehr_id, body)
    assert len(made.versions) == 2 and made.versions[1].endswith("::3"), made
    got = await client.get_contribution(ehr_id, made.contribution_uid)
    assert got.versions == made.versions and got.audit["committer"]["name"] == "Dr. Ek"
    await refused((ValidationError, PreconditionFailedError), client.create_contribution(ehr_id, body))
    await refused(NotFoundError, client.get_contribution(ehr_id, MISSING))
    removal = ContributionBuilder(system_id="oehrpy").add_deletion(made.versions[0]).set_audit(committer="Dr. Ek").build()
    removed = await client.create_contribution(ehr_id, removal)
    assert removed.versions[0].endswith("::2")
    assert not (await client.get_composition(ehr_id, made.versions[0].split("::")[0])).composition
    return made.versions[1]


async def flat(client, ehr_id, template_id):
    """Simplified formats: the web template, an example, and a composition there and back."""
    assert (await client.get_web_template(template_id))["tree"]["id"]
    example = await client.get_template_example(template_id, detail_level="required", format="FLAT")
    made = await client.create_composition(ehr_id, example, template_id=template_id, format="FLAT")
    assert made.uid.endswith("::1"), made
    got = await client.get_composition(ehr_id, made.uid, format="FLAT")
    assert got.composition and not any(key == "_type" for key in got.composition), got.composition
    updated = await client.update_composition(ehr_id, made.uid.split("::")[0], made.uid, example, template_id=template_id, format="FLAT")
    assert updated.uid.endswith("::2"), updated


def folder_of(name, *folders):
    return {
        "_type": "FOLDER",
        "archetype_node_id": "openEHR-EHR-FOLDER.generic.v1",
        "name": {"_type": "DV_TEXT", "value": name},
        "folders": list(folders),
    }


async def directories(client, ehr_id):
    """The directory, from its first version to its deletion."""
    await refused(NotFoundError, client.get_directory(ehr_id))
    made = await client.create_directory(ehr_id, folder_of("root", folder_of("episodes", folder_of("a"))))
    first = made["uid"]["value"]
    assert (await client.get_directory(ehr_id, path="episodes/a"))["name"]["value"] == "a"
    await refused(NotFoundError, client.get_directory(ehr_id, path="episodes/b"))
    await refused(ValidationError, client.create_directory(ehr_id, folder_of("root")))
    updated = await client.update_directory(ehr_id, first, folder_of("root", folder_of("archive")))
    second = updated["uid"]["value"]
    await refused(PreconditionFailedError, client.update_directory(ehr_id, first, folder_of("root")))
    assert (await client.get_directory(ehr_id, version_uid=first))["folders"][0]["name"]["value"] == "episodes"
    await client.delete_directory(ehr_id, second)
    assert await client.get_directory(ehr_id) == {}


async def queries(client, ehr_id, uid):
    """Ad-hoc and stored queries."""
    found = await client.query(AQL, ehr_id=ehr_id)
    assert [uid] in [row[:1] for row in found.rows], (uid, found.rows)
    assert {"uid", "name"} == set(found.as_dicts()[0])
    bound = await client.query(f"{AQL} WHERE e/ehr_id/value = $ehr", {"ehr": ehr_id})
    assert bound.rows == found.rows
    assert (await client.query_get(AQL, ehr_id=ehr_id)).rows == found.rows
    assert (await client.query_get(AQL, ehr_id=ehr_id, offset=1, fetch=1)).rows == found.rows[1:2]
    error = await refused(ValidationError, client.query("SELECT nonsense"))
    assert error.response["message"]
    name = f"org.example.{type(client).__name__.lower()}::all"
    await client.store_query(name, f"{AQL} WHERE e/ehr_id/value = $ehr", "1.0.0")
    await refused(ValidationError, client.store_query(name, AQL, "1.0.0"))
    await client.store_query(name, AQL)
    listed = await client.list_stored_queries(name)
    assert sorted(entry.version for entry in listed) == ["1.0.0", "1.0.1"], listed
    assert name in {entry.name for entry in await client.list_stored_queries()}
    assert (await client.get_stored_query(name, "1.0.1")).q == AQL
    run = await client.execute_stored_query(name, "1.0.0", query_parameters={"ehr": ehr_id})
    assert run.rows == found.rows
    run = await client.execute_stored_query(name, ehr_id=ehr_id, offset=0, fetch=1)
    assert run.rows == found.rows[:1]
    return name


async def administration(client, template_id, name, ehr_id):
    """What the clients of servers reach under their admin addresses."""
    used = await refused(OpenEHRError, client.delete_template(template_id))
    assert used.status_code in (405, 409, 422), used
    await client.delete_stored_query(name, "1.0.0")
    await client.delete_ehr(ehr_id)
    await refused(NotFoundError, client.get_ehr(ehr_id))


async def round_of(kind, base, folder):
    sample = json.loads((folder / "compositions.ndjson").read_text().splitlines()[0])["composition"]
    sample.pop("uid", None)
    async with kind(base_url=base) as client:
        assert await client.health_check()
        info = await client.get_server_info()
        template_id = await templates(client, folder)
        ehr_id = await ehrs(client)
        await statuses(client, ehr_id)
        latest = await compositions(client, ehr_id, sample)
        latest = await contributions(client, ehr_id, sample, latest)
        await flat(client, ehr_id, template_id)
        await directories(client, ehr_id)
        name = await queries(client, ehr_id, latest)
        if client.admin_prefix is not None:
            await administration(client, template_id, name, ehr_id)
    print(f"  {kind.__name__}: the whole round ({info.server_type.value})")


async def main():
    base, folder = sys.argv[1], Path(sys.argv[2])
    for kind in (OpenEHRClient, EHRBaseClient, FerroEHRClient):
        await round_of(kind, base, folder)


asyncio.run(main())
