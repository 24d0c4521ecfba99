"""Fills Keystone: a user for each service, and their endpoints.

stdin: {"identity", "secret", "services": [[user, type, url], ...]}
"""

import json
import sys

from api import Api

given = json.load(sys.stdin)
admin = Api(given["identity"], "admin", given["secret"], "admin")


def make(kind, **fields):
    return admin("identity", "POST", f"/{kind}s", {kind: fields})[kind]["id"]


roles = {role["name"]: role["id"] for role in admin("identity", "GET", "/roles")["roles"]}


def member(project, user, *names):
    for name in names:
        admin("identity", "PUT", f"/projects/{project}/users/{user}/roles/{roles[name]}")


project = make("project", name="service", domain_id="default")
for name in dict.fromkeys(name for name, _, _ in given["services"]):
    user = make("user", name=name, password=given["secret"], domain_id="default")
    member(project, user, "admin", "service")
for name, kind, url in given["services"]:
    service = make("service", name=name, type=kind)
    for interface in ("public", "internal", "admin"):
        make("endpoint", service_id=service, interface=interface, url=url, region_id="RegionOne")
