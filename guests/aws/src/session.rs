//! What the methods of a call share: the properties, the services and the tokens of the call.

use wasm_cpi_sdk::idempotency::Tokens;
use wasm_cpi_sdk::{Error, log};

use crate::api::ebs::Ebs;
use crate::api::ec2::Ec2;
use crate::api::elb::Elb;
use crate::api::elbv2::ElbV2;
use crate::properties::{Endpoints, Properties};

pub(crate) struct Session {
    pub(crate) properties: Properties,
    pub(crate) endpoints: Endpoints,
    /// The tokens with which the create operations of this call can be repeated.
    pub(crate) tokens: Tokens,
}

impl Session {
    pub(crate) fn open() -> Result<Self, Error> {
        let properties = Properties::read()?;
        if properties.has_max_retries() {
            log::debug(
                "properties.max_retries has no effect: requests are repeated for a time, and not a number of times",
            );
        }
        let endpoints = properties.endpoints()?;
        Ok(Self { properties, endpoints, tokens: Tokens::for_this_call() })
    }

    pub(crate) fn ec2(&self) -> Ec2 {
        Ec2::new(self.endpoints.ec2())
    }

    pub(crate) fn ebs(&self) -> Ebs {
        Ebs::new(self.endpoints.ebs())
    }

    pub(crate) fn elb(&self) -> Elb {
        Elb::new(self.endpoints.elb())
    }

    pub(crate) fn elbv2(&self) -> ElbV2 {
        ElbV2::new(self.endpoints.elb())
    }
}
