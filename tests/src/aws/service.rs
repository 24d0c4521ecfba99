//! The services of the simulated AWS, and the APIs behind them.

use crate::gateway::{Request, Services};
use serde_json::Value;

/// A service with its own host name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    Ec2,
    /// Classic load balancers and target groups: two APIs, told apart by `Version`.
    Elb,
    Sts,
    /// EBS direct.
    Ebs,
    /// The instance metadata service.
    Metadata,
}

/// An API, with the name of its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    Ec2,
    Elb,
    ElbV2,
    Sts,
    Ebs,
}

impl Service {
    pub const ALL: [Service; 5] = [Service::Ec2, Service::Elb, Service::Sts, Service::Ebs, Service::Metadata];

    /// Returns the key of this service in the endpoints of a `cloud.json`.
    pub fn key(self) -> &'static str {
        match self {
            Service::Ec2 => "ec2",
            Service::Elb => "elb",
            Service::Sts => "sts",
            Service::Ebs => "ebs",
            Service::Metadata => "metadata",
        }
    }

    /// Returns the name of this service in the scope of a signature.
    pub fn signing_name(self) -> &'static str {
        match self {
            Service::Elb => "elasticloadbalancing",
            other => other.key(),
        }
    }

    /// Returns scheme, host and port of this service in a `cloud.json`.
    pub fn origin(self, cloud: &Value) -> Option<String> {
        cloud["endpoints"][self.key()].as_str().map(str::to_owned)
    }
}

impl Services for Service {
    const ALL: &'static [Service] = &Service::ALL;

    const HOST_NAMES: &'static [&'static str] = &[
        "ec2.us-east-1.amazonaws.com",
        "ebs.us-east-1.amazonaws.com",
        "elasticloadbalancing.us-east-1.amazonaws.com",
        "sts.us-east-1.amazonaws.com",
    ];

    fn origin(self, cloud: &Value) -> Option<String> {
        Service::origin(self, cloud)
    }

    fn relative(self, path: &str) -> String {
        path.to_owned()
    }

    fn is_plain(self) -> bool {
        self == Service::Metadata
    }

    fn has_urls(self) -> bool {
        false
    }

    fn operation(self, request: &Request, body: &[u8]) -> Option<String> {
        match self {
            Service::Ebs => super::ebs::operation(request).map(|(operation, _)| operation.to_owned()),
            Service::Metadata => None,
            _ => {
                let text = std::str::from_utf8(body).ok()?;
                text.split('&').find_map(|pair| pair.strip_prefix("Action=")).map(str::to_owned)
            }
        }
    }

    fn is_read(self, operation: &str) -> bool {
        ["Describe", "Get", "List"].iter().any(|prefix| operation.starts_with(prefix))
    }
}

impl Api {
    pub(super) fn model(self) -> &'static str {
        match self {
            Api::Ec2 => "ec2",
            Api::Elb => "elb",
            Api::ElbV2 => "elbv2",
            Api::Sts => "sts",
            Api::Ebs => "ebs",
        }
    }
}
