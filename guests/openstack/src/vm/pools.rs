//! The pools of load balancers that a VM is a member of. The VM's metadata names
//! them with the keys of bosh-openstack-cpi, so that either CPI can remove the VM
//! from them. A load balancer processes one change at a time, and answers 409 to
//! others.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;
use wasm_cpi_sdk::http::Request;
use wasm_cpi_sdk::{Error, log};

use super::properties::invalid;
use crate::api::{LoadBalancing, Member, Server, may_have_succeeded};
use crate::session::Session;

/// The start of the metadata keys, followed by a number. A value is `<pool>/<member>`.
const TAG: &str = "lbaas_pool_";
/// The number of requests for a member if answers get lost.
const ATTEMPTS: u32 = 4;

/// A pool in `cloud_properties`.
#[derive(Debug, Deserialize)]
pub(super) struct PoolProperties {
    name: Option<String>,
    port: Option<u16>,
    monitoring_port: Option<u16>,
}

/// An existing pool, and the ports on which its members listen.
pub(super) struct Pool {
    id: String,
    port: u16,
    monitoring_port: Option<u16>,
}

pub(super) struct Membership {
    pool: String,
    member: String,
}

/// Returns the requests that [`find`] sends, to read them ahead.
pub(super) fn requests(session: &Session, wanted: &[PoolProperties]) -> Result<Vec<Option<Request>>, Error> {
    let names = wanted.iter().filter_map(|pool| pool.name.as_deref()).filter(|name| !name.is_empty());
    let Some(service) = (if wanted.is_empty() { None } else { session.load_balancing()? }) else {
        return Ok(vec![]);
    };
    Ok(names.map(|name| service.pools_named_request(name)).collect())
}

/// Returns all pools. The error says which one is wrong.
pub(super) fn find(session: &Session, wanted: &[PoolProperties]) -> Result<Vec<Pool>, Error> {
    const KEY: &str = "loadbalancer_pools";
    let mut pools: Vec<Pool> = vec![];
    for (index, requested) in wanted.iter().enumerate() {
        let missing = |key: &str| invalid(&format!("{KEY}[{index}].{key}"), "is missing; set it");
        let name = requested.name.as_deref().filter(|name| !name.is_empty()).ok_or_else(|| missing("name"))?;
        let port = requested.port.filter(|port| *port > 0).ok_or_else(|| missing("port"))?;
        let Some(service) = session.load_balancing()? else {
            let what = "needs the property endpoints.loadbalancer, the URL of the load-balancer service, and the preset \
                        openstack-loadbalancer.json; set both, or remove it";
            return Err(invalid(KEY, what));
        };
        // A VM may have several ports in one pool.
        let before = wanted.iter().zip(&pools).find(|(other, _)| other.name == requested.name);
        if let Some((_, Pool { id, .. })) = before {
            pools.push(Pool { id: id.clone(), port, monitoring_port: requested.monitoring_port });
            continue;
        }
        let mut found = service.pools_named(name)?;
        let id = match (found.pop(), found.len()) {
            (Some(pool), 0) => pool.id,
            (None, _) => return Err(invalid(KEY, &format!("pool `{name}` was not found; use the name of a pool"))),
            (Some(_), _) => {
                return Err(invalid(KEY, &format!("several pools have the name `{name}`; rename all but one")));
            }
        };
        pools.push(Pool { id, port, monitoring_port: requested.monitoring_port });
    }
    Ok(pools)
}

/// Adds the address to the pool. If it fails, no member is left.
pub(super) fn join(
    session: &Session,
    pool: &Pool,
    vm: &str,
    address: &str,
    subnet: Option<&str>,
) -> Result<Membership, Error> {
    let service = service(session)?;
    let joined = add_member(session, &service, pool, vm, address, subnet).and_then(|member| {
        wait_until_active(session, &service, &pool.id, &member.id)?;
        Ok(Membership { pool: pool.id.clone(), member: member.id })
    });
    joined.map_err(|error| {
        let error = error.context(format_args!("adding {address}:{} to pool `{}`", pool.port, pool.id));
        let undone = match service.member_at(&pool.id, address, pool.port) {
            Ok(None) => Ok(()),
            Ok(Some(member)) => leave(session, &Membership { pool: pool.id.clone(), member: member.id }),
            Err(lookup) => Err(lookup.into()),
        };
        match undone {
            Ok(()) => error,
            Err(left) => {
                Error::cloud(format!("{error}; the address may still be a member, because undoing that failed: {left}"))
            }
        }
    })
}

fn add_member(
    session: &Session,
    service: &LoadBalancing,
    pool: &Pool,
    vm: &str,
    address: &str,
    subnet: Option<&str>,
) -> Result<Member, Error> {
    let mut body = json!({"name": vm, "address": address, "protocol_port": pool.port});
    if let Some(subnet) = subnet {
        body["subnet_id"] = json!(subnet);
    }
    if let Some(port) = pool.monitoring_port {
        body["monitor_port"] = json!(port);
    }
    let mut left = ATTEMPTS;
    session.poll().until(&format!("pool `{}` to accept a member", pool.id), || {
        let error = match service.add_member(&pool.id, &body) {
            Err(error) if may_have_succeeded(&error) || error.status() == Some(409) => error,
            outcome => return Ok(Some(outcome?)),
        };
        // The member exists already, or the load balancer is busy.
        if let Some(member) = service.member_at(&pool.id, address, pool.port)? {
            return Ok(Some(member));
        }
        left -= u32::from(may_have_succeeded(&error));
        if left == 0 {
            return Err(error.into());
        }
        log::debug(format_args!("{error}; retrying"));
        Ok(None)
    })
}

fn wait_until_active(session: &Session, service: &LoadBalancing, pool: &str, id: &str) -> Result<(), Error> {
    session.poll().until(&format!("member `{id}` to be active"), || match service.member(pool, id)? {
        Some(member) if member.provisioning_status == "ACTIVE" => Ok(Some(())),
        Some(member) if member.provisioning_status == "ERROR" => Err(Error::cloud(format!(
            "member `{id}` of pool `{pool}` failed: expected status `ACTIVE`, found `ERROR`; look at Octavia's log"
        ))),
        Some(_) => Ok(None),
        None => Err(Error::cloud(format!(
            "member `{id}` of pool `{pool}` disappeared while it was created; something else deleted it, try again"
        ))),
    })
}

/// Removes a member, and waits until it does not exist any more.
pub(super) fn leave(session: &Session, Membership { pool, member }: &Membership) -> Result<(), Error> {
    let service = service(session)?;
    session.wait_until_certain(&format!("member `{member}` of pool `{pool}` to be deleted"), || {
        let Some(found) = service.member(pool, member)? else {
            return Ok(Some(()));
        };
        if found.provisioning_status != "PENDING_DELETE"
            && let Err(error) = service.delete_member(pool, member)
            && error.status() != Some(409)
        {
            return Err(error.into());
        }
        Ok(None)
    })
}

/// Returns the metadata of a server that names its memberships.
pub(super) fn tags(memberships: &[Membership]) -> BTreeMap<String, String> {
    let tag = |(index, Membership { pool, member }): (usize, &Membership)| {
        (format!("{TAG}{}", index + 1), format!("{pool}/{member}"))
    };
    memberships.iter().enumerate().map(tag).collect()
}

/// Removes a server from all pools that its metadata names. If the service is not
/// configured, the log names the members that stay.
pub(super) fn leave_all(session: &Session, server: &Server) -> Result<(), Error> {
    for (key, value) in server.metadata.iter().filter(|(key, _)| key.starts_with(TAG)) {
        match (value.split_once('/'), session.properties.endpoint("loadbalancer")) {
            (Some((pool, member)), Some(_)) => {
                leave(session, &Membership { pool: pool.to_owned(), member: member.to_owned() })?;
            }
            (Some((pool, member)), None) => log::warn(format_args!(
                "VM {} stays member {member} of load balancer pool {pool}, as the property endpoints.loadbalancer is \
                 not set; delete the member yourself",
                server.id
            )),
            (None, _) => {
                log::warn(format_args!("VM {}: expected <pool>/<member> in metadata {key}, found `{value}`", server.id))
            }
        }
    }
    Ok(())
}

fn service(session: &Session) -> Result<LoadBalancing, Error> {
    session.load_balancing()?.ok_or_else(|| {
        Error::cpi("properties.endpoints.loadbalancer: is missing; set it to the URL of the load-balancer service")
    })
}
