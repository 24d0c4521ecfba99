"""Waits for a host to schedule to, then makes what an operator has before the first deployment.

stdin: {"identity", "secret", "api_key", "metadata_url", "metadata_secret"}
stdout: cloud.json, see `cargo xtask cloud up`
"""

import json
import sys
import time

from api import Api

given = json.load(sys.stdin)
admin = Api(given["identity"], "admin", given["secret"], "admin")
bosh = Api(given["identity"], "bosh", given["api_key"], "bosh")


def wait_for(what, found):
    deadline = time.monotonic() + 180
    while not found():
        if time.monotonic() > deadline:
            sys.exit(f"{what} did not come up in 180 s")
        time.sleep(0.3)


def network(api, kind, **fields):
    return api("network", "POST", f"/v2.0/{kind}s".replace("_", "-"), {kind: fields})[kind]


wait_for("a compute host", lambda: admin("compute", "GET", "/os-hypervisors")["hypervisors"])
pools = "/scheduler-stats/get_pools"
wait_for("storage for volumes", lambda: admin("block-storage", "GET", pools)["pools"])

# The defaults are too small for tests side by side. Tests of quotas set their own.
quota = {"instances": 200, "cores": 400, "ram": 800000, "key_pairs": 100, "server_groups": 200}
admin("compute", "PUT", f"/os-quota-sets/{bosh.project}", {"quota_set": quota | {"server_group_members": 100}})
quota = {"volumes": 500, "snapshots": 500, "gigabytes": 8000, "per_volume_gigabytes": 2000}
admin("block-storage", "PUT", f"/os-quota-sets/{bosh.project}", {"quota_set": quota})
quota = {"network": 100, "subnet": 100, "port": 1000, "router": 20, "floatingip": 100}
quota |= {"security_group": 100, "security_group_rule": 1000}
admin("network", "PUT", f"/v2.0/quotas/{bosh.project}", {"quota": quota})

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
external = network(admin, "network", name="public", **flat)["id"]
network(admin, "subnet", network_id=external, ip_version=4, cidr="172.24.4.0/24", enable_dhcp=False)

private = network(bosh, "network", name="bosh")["id"]
pool = {"start": "10.0.0.100", "end": "10.0.0.254"}
subnet = network(bosh, "subnet", network_id=private, ip_version=4, cidr="10.0.0.0/24", allocation_pools=[pool])["id"]
router = network(bosh, "router", name="bosh", external_gateway_info={"network_id": external})["id"]
bosh("network", "PUT", f"/v2.0/routers/{router}/add_router_interface", {"subnet_id": subnet})
group = network(bosh, "security_group", name="bosh")["id"]
network(bosh, "security_group_rule", security_group_id=group, direction="ingress", remote_group_id=group)
address = network(bosh, "floatingip", floating_network_id=external)["floating_ip_address"]

bosh("compute", "POST", "/os-keypairs", {"keypair": {"name": "bosh"}})
credential = {"application_credential": {"name": "bosh", "roles": [{"name": "member"}]}}
credential = bosh("identity", "POST", f"/users/{bosh.user}/application_credentials", credential)
credential = credential["application_credential"]

cloud = {
    "auth_url": given["identity"],
    "region": "RegionOne",
    "username": "bosh",
    "api_key": given["api_key"],
    "domain": "Default",
    "project": "bosh",
    "application_credential_id": credential["id"],
    "application_credential_secret": credential["secret"],
    "endpoints": {
        "compute": bosh.endpoints["compute"],
        "image": bosh.endpoints["image"],
        "network": bosh.endpoints["network"],
        "volume": bosh.endpoints["volumev3"],
    },
    "flavors": flavors,
    "network": private,
    "subnet": subnet,
    "external_network": external,
    "floating_ip": address,
    "security_group": "bosh",
    "key_name": "bosh",
    "availability_zone": "nova",
    "volume_type": "standard",
    "metadata_url": given["metadata_url"],
    "metadata_proxy_shared_secret": given["metadata_secret"],
    "admin": {"username": "admin", "api_key": given["secret"], "project": "admin"},
}
print(json.dumps(cloud, indent=2))
