"""Half of the requests that schemathesis makes are about things that exist: their ids stand in KNOWN."""

import json
import os
import random

import schemathesis

KNOWN = json.loads(os.environ["KNOWN"])
CHANCE = random.Random(1)


def known_id(path, name):
    """An id for a parameter of a path, where there is one."""
    owner = "party" if path.startswith("/demographic") else "composition"
    if "directory" in path:
        owner = "folder"
    version = KNOWN[owner]
    return {
        "ehr_id": KNOWN["ehr"],
        "uid_based_id": CHANCE.choice([version, version.split("::")[0]]),
        "versioned_object_uid": version.split("::")[0],
        "version_uid": version,
        "template_id": KNOWN["template"],
        "qualified_query_name": KNOWN["query"],
        "version": "1.0.0",
    }.get(name)


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    if path_parameters and CHANCE.random() < 0.5:
        for name in path_parameters:
            path_parameters[name] = known_id(context.operation.path, name) or path_parameters[name]
    return path_parameters
