#!/usr/bin/env python3
"""Serves moto on loopback, with authentication on, and describes it in a cloud.json like that of the simulator.

    moto_cloud.py FILE

It runs until it is killed. README.md lists where moto differs from AWS.
"""

import json
import os
import pathlib
import signal
import sys

os.environ["MOTO_ALLOW_NONEXISTENT_REGION"] = "true"

import boto3
import urllib.request
from botocore.config import Config
from moto.server import ThreadedMotoServer

REGION = "us-east-1"
ASSUME = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:*"}]}
ALLOW = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


def client(service, endpoint, key, secret, token=None):
    """Returns a client that sends each request once."""
    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=Config(retries={"total_max_attempts": 1}),
    )


def start():
    """Starts moto in this process; returns the server and the description of its cloud."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    endpoint = "http://%s:%d" % server.get_host_and_port()
    cloud = fill(endpoint)
    # From now on, signatures are verified.
    request = urllib.request.Request(
        endpoint + "/moto-api/reset-auth", data=b"0", headers={"Content-Type": "text/plain"}, method="POST"
    )
    urllib.request.urlopen(request).read()
    return server, cloud


def fill(endpoint):
    """Creates the resources that an operator creates; returns their description."""
    service = {name: client(name, endpoint, "AKIAIOSFODNN7EXAMPLE", "any") for name in ("ec2", "elb", "elbv2", "iam")}
    ec2, iam = service["ec2"], service["iam"]
    user = iam.create_user(UserName="bosh")["User"]
    account = user["Arn"].split(":")[4]
    policy = iam.create_policy(PolicyName="all", PolicyDocument=json.dumps(ALLOW))["Policy"]["Arn"]
    iam.attach_user_policy(UserName="bosh", PolicyArn=policy)
    key = iam.create_access_key(UserName="bosh")["AccessKey"]
    role = iam.create_role(RoleName="bosh-cpi", AssumeRolePolicyDocument=json.dumps(ASSUME))["Role"]["Arn"]
    iam.attach_role_policy(RoleName="bosh-cpi", PolicyArn=policy)
    iam.create_instance_profile(InstanceProfileName="bosh-vm")
    network = ec2.create_vpc(CidrBlock="10.0.0.0/16", AmazonProvidedIpv6CidrBlock=True)["Vpc"]
    vpc, ipv6 = network["VpcId"], network["Ipv6CidrBlockAssociationSet"][0]["Ipv6CidrBlock"]
    subnets = {}
    for number, zone in enumerate("abc"):
        subnet = ec2.create_subnet(
            VpcId=vpc,
            CidrBlock=f"10.0.{number}.0/24",
            AvailabilityZone=REGION + zone,
            Ipv6CidrBlock=ipv6.replace("00::/56", f"0{number}::/64"),
        )
        subnets[REGION + zone] = subnet["Subnet"]["SubnetId"]
    group = ec2.create_security_group(GroupName="bosh", Description="bosh", VpcId=vpc)["GroupId"]
    ec2.create_key_pair(KeyName="bosh")
    address = ec2.allocate_address(Domain="vpc")
    table = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["RouteTables"][0]
    service["elb"].create_load_balancer(
        LoadBalancerName="bosh-elb",
        AvailabilityZones=[REGION + "a"],
        Listeners=[{"Protocol": "tcp", "LoadBalancerPort": 443, "InstancePort": 443}],
    )
    target_group = service["elbv2"].create_target_group(Name="bosh-tg", Protocol="TCP", Port=443, VpcId=vpc)
    images = ec2.describe_images(Filters=[{"Name": "architecture", "Values": ["x86_64"]}])["Images"]
    image = next(image for image in images if image["RootDeviceName"] == "/dev/xvda")
    return {
        "region": REGION,
        "account": account,
        "access_key_id": key["AccessKeyId"],
        "secret_access_key": key["SecretAccessKey"],
        "role_arn": role,
        "instance_profile": "bosh-vm",
        "vpc": vpc,
        "availability_zone": REGION + "a",
        "availability_zones": [REGION + zone for zone in "abc"],
        "subnet": subnets[REGION + "a"],
        "subnets": subnets,
        "network": "10.0.0.0/24",
        "security_group": group,
        "security_group_name": "bosh",
        "route_table": table["RouteTableId"],
        "elastic_ip": address["PublicIp"],
        "allocation": address["AllocationId"],
        "key_name": "bosh",
        "load_balancer": "bosh-elb",
        "target_group": "bosh-tg",
        "target_group_arn": target_group["TargetGroups"][0]["TargetGroupArn"],
        "image": image["ImageId"],
        "instance_type": "m5.large",
        "kms_key_arn": f"arn:aws:kms:{REGION}:{account}:alias/aws/ebs",
        "endpoints": {name: endpoint for name in ("ec2", "elb", "sts", "ebs")},
    }


def main():
    file = pathlib.Path(sys.argv[1])
    _, cloud = start()
    new = file.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_text(json.dumps(cloud, indent=2) + "\n")
    new.rename(file)
    signal.pause()


if __name__ == "__main__":
    main()
