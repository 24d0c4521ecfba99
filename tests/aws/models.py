#!/usr/bin/env python3
"""Writes models.json: what the public service models of botocore say about the operations that the simulator has.

    models.py > models.json

For each operation it holds the names on the wire, the types, what is required, and the values of enumerations, of the
request and of the response. Shapes that are used several times are written once. Types that the simulator checks with
tables of its own (instance types) are plain strings here.
"""

import json

import botocore.loaders

OPERATIONS = {
    "ec2": """
        AssignIpv6Addresses AssignPrivateIpAddresses AssociateAddress AttachVolume CopyImage CreateNetworkInterface
        CreateRoute CreateSnapshot CreateTags CreateVolume DeleteNetworkInterface DeleteRoute DeleteSnapshot
        DeleteVolume DeregisterImage DescribeAddresses DescribeAvailabilityZones DescribeImages DescribeInstanceAttribute
        DescribeInstanceTypes DescribeInstances DescribeNetworkInterfaces DescribeRouteTables DescribeSecurityGroups
        DescribeSnapshots DescribeSubnets DescribeVolumes DescribeVolumesModifications DetachVolume DisassociateAddress
        ModifyInstanceAttribute ModifyNetworkInterfaceAttribute ModifyVolume RebootInstances RegisterImage ReplaceRoute
        RunInstances TerminateInstances
    """,
    "elb": """
        DeregisterInstancesFromLoadBalancer DescribeInstanceHealth DescribeLoadBalancers
        RegisterInstancesWithLoadBalancer
    """,
    "elbv2": "DeregisterTargets DescribeTargetGroups DescribeTargetHealth RegisterTargets",
    "sts": "AssumeRole GetCallerIdentity",
    "ebs": "CompleteSnapshot GetSnapshotBlock ListSnapshotBlocks PutSnapshotBlock StartSnapshot",
}
# The type of a shape in the model, and here.
SCALARS = {
    "string": "string",
    "integer": "integer",
    "long": "integer",
    "boolean": "boolean",
    "timestamp": "timestamp",
    "blob": "blob",
    "double": "number",
    "float": "number",
}
# Enumerations that are written as plain strings.
PLAIN = {"InstanceType"}


class Service:
    """The operations of one service, and the shapes that they need."""

    def __init__(self, name, operations):
        model = botocore.loaders.Loader().load_service_model(name, "service-2")
        self.shapes, self.model, self.protocol = model["shapes"], model, model["metadata"]["protocol"]
        self.table = {
            "version": model["metadata"]["apiVersion"],
            "namespace": model["metadata"].get("xmlNamespace", ""),
            "operations": {},
            "input": {},
            "output": {},
        }
        for operation in sorted(operations):
            self.table["operations"][operation] = self.operation(model["operations"][operation])
        for direction in ("input", "output"):
            self.table[direction] = dict(sorted(self.table[direction].items()))

    def operation(self, operation):
        written = {}
        if self.protocol == "rest-json":
            http = operation["http"]
            written = {"method": http["method"], "path": http["requestUri"], "status": http.get("responseCode", 200)}
        for direction in ("input", "output"):
            reference = operation.get(direction)
            if reference:
                written[direction] = self.reference(reference, direction)
                if "resultWrapper" in reference:
                    written["wrapper"] = reference["resultWrapper"]
        return written

    def reference(self, reference, direction):
        """Returns the name of a shape that is in the table, or the name of a scalar type."""
        name = reference["shape"]
        shape = self.shapes[name]
        if shape["type"] in SCALARS and ("enum" not in shape or name in PLAIN):
            return SCALARS[shape["type"]]
        key = "#" + name
        table = self.table[direction]
        if key not in table:
            table[key] = None
            table[key] = self.shape(shape, direction)
        return key

    def shape(self, shape, direction):
        if "enum" in shape:
            return {"enum": shape["enum"]}
        if shape["type"] == "list":
            return {"list": self.reference(shape["member"], direction), "item": self.item(shape, direction)}
        assert shape["type"] == "structure", shape
        written = {"members": {}}
        names = {}
        for member, reference in shape["members"].items():
            names[member] = self.name(member, reference, direction)
            written["members"][names[member]] = self.reference(reference, direction)
            place = reference.get("location")
            if place:
                written.setdefault("places", {})[names[member]] = place
        required = [names[member] for member in shape.get("required", [])]
        if required and direction == "input":
            written["required"] = required
        if "payload" in shape:
            written["payload"] = names[shape["payload"]]
        return written

    def name(self, member, reference, direction):
        """Returns the name of a member on the wire."""
        location = reference.get("locationName") or self.shapes[reference["shape"]].get("locationName")
        if self.protocol == "ec2" and direction == "input":
            query = reference.get("queryName") or self.shapes[reference["shape"]].get("queryName")
            if query:
                return query
            return location[0].upper() + location[1:] if location else member
        return location or member

    def item(self, shape, direction):
        """Returns the name of a list's elements on the wire; an empty name means that there is no such level."""
        if self.protocol == "rest-json" or (self.protocol == "ec2" and direction == "input"):
            return ""
        assert not shape.get("flattened"), shape
        return shape["member"].get("locationName", "member")


def main():
    table = {name: Service(name, operations.split()).table for name, operations in OPERATIONS.items()}
    print(written(table))


def written(table):
    """Returns the table as JSON, one line per shape and operation, so that a difference can be read."""
    out = ["{"]
    for number, (name, service) in enumerate(table.items()):
        out.append(f"{json.dumps(name)}: {{")
        out.append(f'"version": {json.dumps(service["version"])}, "namespace": {json.dumps(service["namespace"])},')
        for section in ("operations", "input", "output"):
            rows = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in service[section].items()]
            out.append(f'"{section}": {{\n' + ",\n".join(rows) + ("\n}," if section != "output" else "\n}"))
        out.append("}," if number + 1 < len(table) else "}")
    return "\n".join(out) + "\n}"


if __name__ == "__main__":
    main()
