#!/usr/bin/env python3
"""Drives the simulator with botocore, and compares it with moto.

    second_opinion.py STRICT LENIENT

STRICT and LENIENT are cloud.json files of two simulators. STRICT wants every body signed, and LENIENT accepts blocks
that are not signed, because botocore never signs the body of a block. The program prints one line per problem, and
fails if there is one:

- a step of the scenario that the simulator must accept or refuse, and does not;
- a step that one of moto and the simulator accepts and the other refuses, unless README.md lists it;
- an operation of models.json that no step uses successfully;
- a parameter of botocore's models that the simulator does not know;
- a request that is signed wrongly, or changed after it was signed, and is accepted.
"""

import base64
import datetime
import hashlib
import json
import logging
import pathlib
import re
import sys
import tempfile

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

import moto_cloud
from scenario import scenario

HERE = pathlib.Path(__file__).parent
MODELS = json.loads((HERE / "models.json").read_text())
# What the simulator says about a parameter that it does not know or cannot read.
NOT_READ = ("must be an integer", "must be true or false", "values of the API", "numbered from 1", "must be a number")


class Cloud:
    """A cloud, and the outcome of each step on it."""

    def __init__(self, description):
        self.description = description
        self.outcomes, self.operations, self.problems = {}, set(), []
        self.verify = None
        if "ca" in description:
            file = tempfile.NamedTemporaryFile("w", suffix=".pem", delete=False)
            file.write(description["ca"])
            file.close()
            self.verify = file.name
        self.clients = {}

    def client(self, service, **changes):
        """Returns a client with the credentials of the cloud, or with changed ones."""
        name = (service, tuple(sorted(changes.items())))
        if name not in self.clients:
            own = self.description
            settings = {
                "aws_access_key_id": own["access_key_id"],
                "aws_secret_access_key": own["secret_access_key"],
                "region_name": own["region"],
                **changes,
            }
            host = {"elbv2": "elb"}.get(service, service)
            self.clients[name] = boto3.client(
                service,
                endpoint_url=own["endpoints"][host],
                verify=self.verify,
                config=Config(retries={"total_max_attempts": 1}),
                **settings,
            )
        return self.clients[name]

    def do(self, step, service, method, parameters, refused=None, **changes):
        """Calls a method of botocore and returns its result, or nothing if it was refused.

        `parameters` is a function, because a step can depend on one that failed. `refused` is the code with which the
        simulator must refuse the step.
        """
        assert step not in self.outcomes, step
        try:
            client = self.client(service, **changes)
            result = getattr(client, method)(**parameters())
        except ClientError as error:
            self.outcomes[step] = (error.response["Error"]["Code"], refused, str(error))
            return None
        except (BotoCoreError, ResponseParserError) as error:
            self.outcomes[step] = (type(error).__name__, refused, str(error)[:200])
            return None
        except (TypeError, KeyError, IndexError) as error:
            self.outcomes[step] = ("impossible", refused, repr(error))
            return None
        self.outcomes[step] = (None, refused, "")
        self.operations.add((service, client.meta.method_to_api_mapping[method]))
        return result

    def expect(self, what, found, wanted):
        """Reports a problem if a result differs. Only the simulator's results matter."""
        if found != wanted:
            self.problems.append(f"{what}: expected {wanted}, got {found}")

    def read_until(self, service, method, parameters, pointer, wanted):
        """Repeats a read until an element has the value; returns all values that it had."""
        seen = []
        for _ in range(10):
            try:
                value = getattr(self.client(service), method)(**parameters())
                self.operations.add((service, self.client(service).meta.method_to_api_mapping[method]))
                for key in pointer:
                    value = value[key]
            except (BotoCoreError, ClientError, ResponseParserError, TypeError, KeyError, IndexError):
                value = None
            seen.append(value)
            if value == wanted:
                break
        return seen


def deviations():
    """Returns the steps that README.md lists: those that moto accepts wrongly, and those that it refuses wrongly."""
    rows = re.findall(r"^\| `([^`]+)` \| (accepts|refuses) \|", (HERE / "README.md").read_text(), re.M)
    return {step: kind for step, kind in rows}


def compare(simulator, moto):
    known, found = deviations(), {}
    for step, (code, refused, message) in simulator.outcomes.items():
        if code != refused:
            expected = f"refused with {refused}" if refused else "accepted"
            yield f"`{step}` must be {expected}, got {code}: {message}"
        other = moto.outcomes.get(step, ("impossible", None, ""))[0]
        if other is None and code is not None:
            found[step] = "accepts"
        if other is not None and code is None:
            found[step] = "refuses"
            if step not in known:
                yield f"moto refuses `{step}`: {moto.outcomes[step]}"
        elif step in found and step not in known:
            yield f"moto accepts `{step}`, and the simulator does not: {message}"
    for step, kind in known.items():
        if found.get(step) != kind:
            yield f"README.md says that moto {kind} `{step}`, and it does not"


def unused(simulator):
    for service, table in MODELS.items():
        for operation in table["operations"]:
            if (service, operation) not in simulator.operations:
                yield f"no step uses {service} {operation} successfully"


def sample(shape, depth=0):
    """Returns a value of the shape, with all members of structures."""
    if shape.type_name == "structure":
        return {name: sample(member, depth + 1) for name, member in shape.members.items()} if depth < 6 else {}
    if shape.type_name == "list":
        return [sample(shape.member, depth + 1)]
    if getattr(shape, "enum", None):
        return shape.enum[0]
    if shape.type_name in ("integer", "long"):
        return max(1, shape.metadata.get("min", 1))
    return {"boolean": True, "double": 1.5, "float": 1.5, "blob": b"x", "timestamp": datetime.datetime(2026, 1, 1)}.get(
        shape.type_name, "x" * max(4, shape.metadata.get("min", 1))
    )


def models(simulator):
    """Sends each parameter of each operation once, as botocore writes it, and one that does not exist."""
    for service, table in MODELS.items():
        client = simulator.client(service)
        methods = {operation: method for method, operation in client.meta.method_to_api_mapping.items()}
        for operation in table["operations"]:
            shape = client.meta.service_model.operation_model(operation).input_shape
            members = shape.members if shape else {}
            required = {name: sample(members[name]) for name in (shape.required_members if shape else [])}
            call = getattr(client, methods[operation])
            for name, member in members.items():
                code, message = code_of(call, {**required, name: sample(member)})
                if code in ("UnknownParameter", "MalformedQueryString") or any(text in message for text in NOT_READ):
                    yield f"{service} {operation}: botocore's parameter {name} is refused: {code} {message}"
            if service != "ebs":
                with Changed(client, "before-call", add_parameter):
                    code, message = code_of(call, required)
                if code != "UnknownParameter":
                    yield f"{service} {operation}: a parameter that does not exist gives {code} {message}"


def code_of(call, parameters):
    try:
        call(**parameters)
    except ClientError as error:
        return error.response["Error"]["Code"], error.response["Error"].get("Message", "")
    return None, ""


class Changed:
    """Changes the requests of a client."""

    def __init__(self, client, event, handler):
        self.client, self.event, self.handler = client, event, handler

    def __enter__(self):
        self.client.meta.events.register(self.event, self.handler)

    def __exit__(self, *_):
        self.client.meta.events.unregister(self.event, self.handler)


def add_parameter(params, **_):
    params["body"]["NoSuchParameter"] = "x"


def change_body(request, **_):
    request.body = request.body.replace("DescribeVolumes", "DescribeSubnets")


def change_host(request, **_):
    request.headers["Host"] = "ec2.elsewhere"


def drop_signature(request, **_):
    del request.headers["Authorization"]


def signatures(strict, lenient):
    read = lambda cloud, **changes: code_of(cloud.client("ec2", **changes).describe_volumes, {})[0]
    for name, wanted, changes in (
        ("its own key", None, {}),
        ("a wrong secret", "AuthFailure", {"aws_secret_access_key": "wrong"}),
        ("an unknown key", "AuthFailure", {"aws_access_key_id": "AKIA0000UNKNOWN00000"}),
        ("another region", "AuthFailure", {"region_name": "eu-west-1"}),
        ("a session token of no session", "AuthFailure", {"aws_session_token": "x"}),
    ):
        for cloud in (strict, lenient):
            code = read(cloud, **changes)
            if code != wanted:
                yield f"a request signed with {name} gives {code}, expected {wanted}"
    for handler, wanted in (
        (change_body, "AuthFailure"),
        (change_host, "AuthFailure"),
        (drop_signature, "MissingParameter"),
    ):
        with Changed(strict.client("ec2"), "before-send", handler):
            code = read(strict)
        if code != wanted:
            yield f"{handler.__name__} gives {code}, expected {wanted}"
    for service, method, wanted in (
        ("sts", "get_caller_identity", "SignatureDoesNotMatch"),
        ("elb", "describe_load_balancers", "SignatureDoesNotMatch"),
        ("elbv2", "describe_target_groups", "SignatureDoesNotMatch"),
    ):
        code = code_of(getattr(strict.client(service, aws_secret_access_key="wrong"), method), {})[0]
        if code != wanted:
            yield f"{service} with a wrong secret gives {code}, expected {wanted}"
    block = b"\1" * (512 << 10)
    snapshot = strict.client("ebs").start_snapshot(VolumeSize=1)["SnapshotId"]
    parameters = {
        "SnapshotId": snapshot,
        "BlockIndex": 0,
        "BlockData": block,
        "DataLength": len(block),
        "Checksum": base64.b64encode(hashlib.sha256(block).digest()).decode(),
        "ChecksumAlgorithm": "SHA256",
    }
    code = code_of(strict.client("ebs").put_snapshot_block, parameters)[0]
    if code != "InvalidSignatureException":
        yield f"a block whose body is not signed gives {code}"


def main():
    strict, lenient = (Cloud(json.loads(pathlib.Path(path).read_text())) for path in sys.argv[1:3])
    # moto logs every request, and a stack trace for each of its own failures.
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server, description = moto_cloud.start()
    moto = Cloud(description)
    scenario(moto)
    server.stop()
    scenario(lenient)
    problems = [
        *lenient.problems,
        *compare(lenient, moto),
        *unused(lenient),
        *signatures(strict, lenient),
        *models(strict),
    ]
    print("\n".join(problems) or f"{len(lenient.outcomes)} steps and {len(lenient.operations)} operations agree")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
