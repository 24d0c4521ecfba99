"""Waits for a compute host and storage, then creates the resources that an operator creates before the first deployment.

stdin: {"identity", "secret", "api_key", "metadata_url", "metadata_secret"}
stdout: the content of cloud.json, see `cargo xtask cloud up`
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from api import Api

# So many tests can run at the same time; further tests wait for a free tenant.
TENANTS = 7

settings = json.load(sys.stdin)
admin = Api(settings["identity"], "admin", settings["secret"], "admin")
roles = {role["name"]: role["id"] for role in admin("identity", "GET", "/roles")["roles"]}


def wait_for(what, found):
    deadline = time.monotonic() + 180
    while not found():
        if time.monotonic() > deadline:
            sys.exit(f"{what} is not available after 180 s; see the logs of nova-compute and cinder-volume")
        time.sleep(0.3)


def create_network_resource(api, kind, **fields):
    return api("network", "POST", f"/v2.0/{kind}s".replace("_", "-"), {kind: fields})[kind]


def create_tenant(name):
    """Creates a project with a user, quotas for tests, a network, a floating IP and credentials."""
    project = {"project": {"name": name, "domain_id": "default"}}
    project = admin("identity", "POST", "/projects", project)["project"]["id"]
    user = {"user": {"name": name, "password": settings["api_key"], "domain_id": "default"}}
    user = admin("identity", "POST", "/users", user)["user"]["id"]
    admin("identity", "PUT", f"/projects/{project}/users/{user}/roles/{roles['member']}")
    # The default quotas are too small for tests that run at the same time. Tests of quotas set their own.
    quota = {"instances": 200, "cores": 400, "ram": 800000, "key_pairs": 100, "server_groups": 200}
    admin("compute", "PUT", f"/os-quota-sets/{project}", {"quota_set": quota | {"server_group_members": 100}})
    quota = {"volumes": 500, "snapshots": 500, "gigabytes": 8000, "per_volume_gigabytes": 2000}
    admin("block-storage", "PUT", f"/os-quota-sets/{project}", {"quota_set": quota})
    quota = {"network": 100, "subnet": 100, "port": 1000, "router": 20, "floatingip": 100}
    quota |= {"security_group": 100, "security_group_rule": 1000}
    admin("network", "PUT", f"/v2.0/quotas/{project}", {"quota": quota})

    own = Api(settings["identity"], name, settings["api_key"], name)
    private = create_network_resource(own, "network", name="bosh")["id"]
    pool = {"start": "10.0.0.100", "end": "10.0.0.254"}
    fields = {"network_id": private, "ip_version": 4, "cidr": "10.0.0.0/24", "allocation_pools": [pool]}
    subnet = create_network_resource(own, "subnet", **fields)["id"]
    gateway = {"network_id": external}
    router = create_network_resource(own, "router", name="bosh", external_gateway_info=gateway)["id"]
    own("network", "PUT", f"/v2.0/routers/{router}/add_router_interface", {"subnet_id": subnet})
    group = create_network_resource(own, "security_group", name="bosh")["id"]
    rule = {"security_group_id": group, "direction": "ingress", "remote_group_id": group}
    create_network_resource(own, "security_group_rule", **rule)
    address = create_network_resource(own, "floatingip", floating_network_id=external)["floating_ip_address"]

    own("compute", "POST", "/os-keypairs", {"keypair": {"name": "bosh"}})
    credential = {"application_credential": {"name": "bosh", "roles": [{"name": "member"}]}}
    credential = own("identity", "POST", f"/users/{own.user}/application_credentials", credential)
    credential = credential["application_credential"]
    return {
        "username": name,
        "api_key": settings["api_key"],
        "project": name,
        "application_credential_id": credential["id"],
        "application_credential_secret": credential["secret"],
        "endpoints": {
            "compute": own.endpoints["compute"],
            "image": own.endpoints["image"],
            "network": own.endpoints["network"],
            "volume": own.endpoints["volumev3"],
        },
        "network": private,
        "subnet": subnet,
        "floating_ip": address,
    }


wait_for("a compute host", lambda: admin("compute", "GET", "/os-hypervisors")["hypervisors"])
pools = "/scheduler-stats/get_pools"
wait_for("storage for volumes", lambda: admin("block-storage", "GET", pools)["pools"])

flavors = {}
for name, ram, vcpus, disk, ephemeral in (
    ("m1.tiny", 512, 1, 1, 0),
    ("m1.small", 2048, 1, 10, 10),
    ("m1.medium", 4096, 2, 20, 20),
):
    flavor = {"name": name, "ram": ram, "vcpus": vcpus, "disk": disk, "OS-FLV-EXT-DATA:ephemeral": ephemeral}
    flavors[name] = admin("compute", "POST", "/flavors", {"flavor": flavor})["flavor"]["id"]

specs = {"volume_backend_name": "file"}
admin("block-storage", "POST", "/types", {"volume_type": {"name": "standard", "extra_specs": specs}})

flat = {"router:external": True, "provider:network_type": "flat", "provider:physical_network": "public"}
external = create_network_resource(admin, "network", name="public", **flat)["id"]
create_network_resource(admin, "subnet", network_id=external, ip_version=4, cidr="172.24.4.0/24", enable_dhcp=False)

bosh = create_tenant("bosh")
with ThreadPoolExecutor(4) as threads:
    tenants = list(threads.map(create_tenant, [f"tests-{number}" for number in range(1, TENANTS + 1)]))

cloud = bosh | {
    "auth_url": settings["identity"],
    "region": "RegionOne",
    "domain": "Default",
    "flavors": flavors,
    "external_network": external,
    "security_group": "bosh",
    "key_name": "bosh",
    "availability_zone": "nova",
    "volume_type": "standard",
    "metadata_url": settings["metadata_url"],
    "metadata_proxy_shared_secret": settings["metadata_secret"],
    "admin": {"username": "admin", "api_key": settings["secret"], "project": "admin"},
    # Tests that count resources need a tenant that no other test uses. Each entry holds the values that differ.
    "tenants": tenants,
}
print(json.dumps(cloud, indent=2))
