//! The security groups of a VM: IDs, or names that are looked up.

use wasm_cpi_sdk::Error;

use super::create::failure::Failure;
use super::networks::Networks;
use super::properties::VmProperties;
use crate::api::Query;
use crate::api::ec2::SecurityGroup;
use crate::session::Session;

/// The groups as the operator wrote them.
pub(super) struct Wanted<'a> {
    all: &'a [String],
}

impl<'a> Wanted<'a> {
    /// Returns the groups of the VM type, otherwise those of the networks, otherwise the default ones.
    pub(super) fn of(
        session: &'a Session,
        properties: &'a VmProperties,
        networks: &'a Networks,
    ) -> Result<Self, Error> {
        let lists =
            [properties.security_groups(), &networks.security_groups, session.properties.default_security_groups()];
        match lists.into_iter().find(|list| !list.is_empty()) {
            Some(all) => Ok(Self { all }),
            None => Err(Error::cpi(
                "the VM has no security groups; set properties.default_security_groups, or security_groups in the \
                 cloud_properties of the network or of the VM type",
            )),
        }
    }

    fn names(&self) -> Vec<&'a str> {
        self.all.iter().map(String::as_str).filter(|group| !is_id(group)).collect()
    }

    /// Returns the request that finds the names, if there are names.
    pub(super) fn query(&self, session: &Session) -> Option<Query<Vec<SecurityGroup>>> {
        let names = self.names();
        (!names.is_empty()).then(|| session.ec2().security_groups_named(&names))
    }

    /// Returns the IDs of all groups. A name that exists in several VPCs is that of the VPC of the subnet.
    pub(super) fn ids(&self, session: &Session, found: &[SecurityGroup], subnet: &str) -> Result<Vec<String>, Failure> {
        let with = |name: &str| found.iter().filter(|group| group.name == name).collect::<Vec<_>>();
        let is_ambiguous = self.names().into_iter().any(|name| with(name).len() > 1);
        let vpc = if is_ambiguous { Some(vpc(session, subnet)?) } else { None };
        let mut ids: Vec<String> = vec![];
        for group in self.all {
            let id = if is_id(group) {
                group.clone()
            } else {
                let fitting: Vec<_> =
                    with(group).into_iter().filter(|found| vpc.as_ref().is_none_or(|vpc| *vpc == found.vpc)).collect();
                match fitting.as_slice() {
                    [only] => only.id.clone(),
                    [] => Err(invalid(group, "does not exist in the VPC; create it, or correct the name"))?,
                    _ => Err(invalid(group, "is the name of several groups in the VPC; use the ID of one"))?,
                }
            };
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Ok(ids)
    }
}

fn vpc(session: &Session, subnet: &str) -> Result<String, Failure> {
    let found = session.ec2().subnets(&[subnet]).send()?;
    let own = found.into_iter().find(|found| found.id == subnet);
    let missing = || Error::cpi(format!("subnet `{subnet}` does not exist; correct it"));
    Ok(own.map(|subnet| subnet.vpc).ok_or_else(missing)?)
}

/// Returns true if the text is an ID. Names can begin with `sg-`, too, as bosh-aws-cpi defines it.
fn is_id(group: &str) -> bool {
    let digits = |id: &str| id.len() >= 8 && id.bytes().take(8).all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    group.strip_prefix("sg-").is_some_and(digits)
}

fn invalid(group: &str, what: &str) -> Error {
    Error::cpi(format!("security group `{group}` {what}"))
}
