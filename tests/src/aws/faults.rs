//! Answers of services to inject as faults.

use super::answer;
use super::error::Error;
use super::service::{Api, Service};
use crate::gateway::Fault;

/// Returns a fault that answers with this error, in the protocol of the service.
pub fn service_error(service: Service, status: u16, code: &str, message: &str) -> Fault {
    let api = match service {
        Service::Ec2 | Service::Metadata => Api::Ec2,
        Service::Elb => Api::Elb,
        Service::Sts => Api::Sts,
        Service::Ebs => Api::Ebs,
    };
    let error = Error::with_status(status, code, message);
    Fault::Answer(answer::error(api, &error, "00000000-0000-4000-a000-000000000000"))
}

/// Returns a fault that answers as the service does when a client sends too many requests.
pub fn throttled(service: Service) -> Fault {
    match service {
        Service::Ebs => service_error(service, 400, "RequestThrottledException", "Rate exceeded"),
        Service::Ec2 | Service::Metadata => {
            service_error(service, 503, "RequestLimitExceeded", "Request limit exceeded.")
        }
        Service::Elb | Service::Sts => service_error(service, 400, "Throttling", "Rate exceeded"),
    }
}
