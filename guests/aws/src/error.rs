//! What an error code of AWS means: for a repetition of the request, and for BOSH.

use wasm_cpi_sdk::Error;

use crate::api::ApiError;

/// The codes of requests that were not processed, because there were too many.
const THROTTLED: [&str; 10] = [
    "BandwidthLimitExceeded",
    "EC2ThrottledException",
    "PriorRequestNotComplete",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "SnapshotCreationPerVolumeRateExceeded",
    "Throttling",
    "ThrottlingException",
];

/// The codes of failures of AWS itself: the request may have been processed or not.
const INTERNAL: [&str; 6] =
    ["InternalError", "InternalFailure", "RequestTimeout", "ServiceUnavailable", "ServerInternal", "Unavailable"];

/// The codes of a lack of capacity, which ends by itself.
const CAPACITY: [&str; 9] = [
    "InsufficientAddressCapacity",
    "InsufficientCapacity",
    "InsufficientHostCapacity",
    "InsufficientInstanceCapacity",
    "InsufficientReservedInstanceCapacity",
    "InsufficientVolumeCapacity",
    "MaxSpotInstanceCountExceeded",
    "SpotMaxPriceTooLow",
    "UnfulfillableCapacity",
];

/// The codes of credentials that AWS does not accept.
const CREDENTIALS: [&str; 5] =
    ["AuthFailure", "InvalidClientTokenId", "MissingAuthenticationToken", "OptInRequired", "SignatureDoesNotMatch"];

pub(crate) fn is_throttled(code: &str, status: Option<u16>) -> bool {
    THROTTLED.contains(&code) || status == Some(429)
}

pub(crate) fn is_internal(code: &str) -> bool {
    INTERNAL.contains(&code)
}

pub(crate) fn is_capacity(code: &str) -> bool {
    CAPACITY.contains(&code)
}

pub(crate) fn is_not_found(code: &str) -> bool {
    code.ends_with(".NotFound")
        || matches!(
            code,
            "TargetGroupNotFound" | "LoadBalancerNotFound" | "AccessPointNotFound" | "ResourceNotFoundException"
        )
}

pub(crate) fn is_unauthorized(code: &str) -> bool {
    matches!(code, "UnauthorizedOperation" | "AccessDenied" | "AccessDeniedException" | "Client.UnauthorizedOperation")
}

/// Returns true if AWS refuses the caller, whatever it asks for.
pub(crate) fn refuses_caller(code: &str) -> bool {
    is_unauthorized(code) || CREDENTIALS.contains(&code)
}

/// Returns what an operator can do about an error, if this is known by its code.
pub(crate) fn remedy(error: &ApiError) -> Option<String> {
    let code = error.code();
    if is_unauthorized(code) {
        let action = format!("{}:{}", iam_prefix(&error.operation), error.operation);
        return Some(format!(
            "the credentials may not do this; add {{\"Effect\": \"Allow\", \"Action\": \"{action}\", \"Resource\": \"*\"}} to \
             their IAM policy{}, and read an encoded message with `aws sts decode-authorization-message`",
            also_needed(&error.operation)
        ));
    }
    if CREDENTIALS.contains(&code) {
        return Some(
            "AWS does not accept the credentials; check access_key_id and secret_access_key, or the role, and that the account \
             may use this region"
                .to_owned(),
        );
    }
    if code == "TagLimitExceeded" {
        return Some("a resource of AWS has at most 50 tags; use fewer tags".to_owned());
    }
    if code.ends_with("LimitExceeded") && !is_throttled(code, error.status()) || code == "TooManyTargets" {
        return Some(
            "the account has reached a quota; ask for more in Service Quotas, or delete what is not used".to_owned(),
        );
    }
    None
}

/// Returns the prefix of the operation's name in IAM policies.
fn iam_prefix(operation: &str) -> &'static str {
    match operation {
        "RegisterTargets"
        | "DeregisterTargets"
        | "DescribeTargetGroups"
        | "DescribeTargetHealth"
        | "RegisterInstancesWithLoadBalancer"
        | "DeregisterInstancesFromLoadBalancer" => "elasticloadbalancing",
        "StartSnapshot" | "PutSnapshotBlock" | "CompleteSnapshot" => "ebs",
        _ => "ec2",
    }
}

/// Returns the other permissions that EC2 checks for an operation.
fn also_needed(operation: &str) -> &'static str {
    match operation {
        "RunInstances" => {
            " (RunInstances also needs ec2:CreateTags, iam:PassRole for the role of an instance profile, and kms:CreateGrant for \
             encrypted volumes with an own key)"
        }
        "CreateVolume" | "CreateSnapshot" | "CreateNetworkInterface" | "CopyImage" | "RegisterImage" => {
            " (with tags it also needs ec2:CreateTags)"
        }
        _ => "",
    }
}

impl From<ApiError> for Error {
    fn from(error: ApiError) -> Self {
        match remedy(&error) {
            Some(remedy) => Self::cloud(format!("{error}; {remedy}")),
            None => Self::cloud(error.to_string()),
        }
    }
}
