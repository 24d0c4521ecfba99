"""Who the client is, and roles."""


def identities(cloud, own):
    result = cloud.do("who am I", "sts", "get_caller_identity", lambda: {})
    cloud.expect("the account", result and result["Account"], own["account"])
    role = cloud.do(
        "assume a role", "sts", "assume_role", lambda: {"RoleArn": own["role_arn"], "RoleSessionName": "bosh"}
    )
    key = role["Credentials"] if role else {}
    session = {
        "aws_access_key_id": key.get("AccessKeyId", "x"),
        "aws_secret_access_key": key.get("SecretAccessKey", "x"),
    }
    token = key.get("SessionToken", "x")
    cloud.do("use a role", "ec2", "describe_volumes", lambda: {}, aws_session_token=token, **session)
    cloud.do("use a role without its token", "ec2", "describe_volumes", lambda: {}, "AuthFailure", **session)
    cloud.do(
        "use a role with another token",
        "ec2",
        "describe_volumes",
        lambda: {},
        "AuthFailure",
        aws_session_token="x" * 32,
        **session,
    )
    cloud.do(
        "assume a role that does not exist",
        "sts",
        "assume_role",
        lambda: {"RoleArn": own["role_arn"] + "-x", "RoleSessionName": "bosh"},
        "AccessDenied",
    )
