"""Creates a user for each service, and the endpoints of all services, in Keystone.

stdin: {"identity", "secret", "services": [[user, type, url], ...]}
"""

import json
import sys

from api import Api

settings = json.load(sys.stdin)
admin = Api(settings["identity"], "admin", settings["secret"], "admin")


def create(kind, **fields):
    return admin("identity", "POST", f"/{kind}s", {kind: fields})[kind]["id"]


roles = {role["name"]: role["id"] for role in admin("identity", "GET", "/roles")["roles"]}


def assign_roles(project, user, *names):
    for name in names:
        admin("identity", "PUT", f"/projects/{project}/users/{user}/roles/{roles[name]}")


project = create("project", name="service", domain_id="default")
for name in dict.fromkeys(name for name, _, _ in settings["services"]):
    user = create("user", name=name, password=settings["secret"], domain_id="default")
    assign_roles(project, user, "admin", "service")
for name, kind, url in settings["services"]:
    service = create("service", name=name, type=kind)
    for interface in ("public", "internal", "admin"):
        create("endpoint", service_id=service, interface=interface, url=url, region_id="RegionOne")
