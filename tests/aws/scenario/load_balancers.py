"""Load balancers and target groups."""


def load_balancers(cloud, own, instance):
    name = own["load_balancer"]
    targets = lambda: {"LoadBalancerName": name, "Instances": [{"InstanceId": instance()}]}
    cloud.do("find a load balancer", "elb", "describe_load_balancers", lambda: {"LoadBalancerNames": [name]})
    cloud.do("register with a load balancer", "elb", "register_instances_with_load_balancer", targets)
    cloud.do(
        "register with no load balancer",
        "elb",
        "register_instances_with_load_balancer",
        lambda: {**targets(), "LoadBalancerName": "unknown"},
        "LoadBalancerNotFound",
    )
    cloud.do("read the health of instances", "elb", "describe_instance_health", lambda: {"LoadBalancerName": name})
    cloud.do("deregister from a load balancer", "elb", "deregister_instances_from_load_balancer", targets)
    found = cloud.do("find a target group", "elbv2", "describe_target_groups", lambda: {"Names": [own["target_group"]]})
    cloud.expect("the target group", found and found["TargetGroups"][0]["TargetGroupArn"], own["target_group_arn"])
    cloud.do(
        "find no target group", "elbv2", "describe_target_groups", lambda: {"Names": ["unknown"]}, "TargetGroupNotFound"
    )
    group = {"TargetGroupArn": own["target_group_arn"]}
    target = lambda: {**group, "Targets": [{"Id": instance(), "Port": 443}]}
    cloud.do("register a target", "elbv2", "register_targets", target)
    states = cloud.read_until(
        "elbv2",
        "describe_target_health",
        lambda: group,
        ("TargetHealthDescriptions", 0, "TargetHealth", "State"),
        "healthy",
    )
    cloud.expect("the states of a target", states, ["initial", "healthy"])
    cloud.do(
        "register a target that does not exist",
        "elbv2",
        "register_targets",
        lambda: {**group, "Targets": [{"Id": "i-0123456789abcdef0"}]},
        "InvalidTarget",
    )
    cloud.do("deregister a target", "elbv2", "deregister_targets", target)
