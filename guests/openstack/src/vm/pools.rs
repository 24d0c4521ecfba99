//! Pools of load balancers that a VM is a member of. Its metadata says which,
//! under the names that bosh-openstack-cpi uses, so that either CPI takes it out
//! again. A load balancer does one thing at a time, and refuses others with 409.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;
use wasm_cpi_sdk::{Error, log};

use super::properties::wrong;
use crate::api::{LoadBalancing, Member, Server, unclear};
use crate::session::Session;

/// Followed by a number; the value is `<pool>/<member>`.
const TAG: &str = "lbaas_pool_";
/// How often to ask for a member when answers get lost.
const TRIES: u32 = 4;

/// As in `cloud_properties`.
#[derive(Debug, Deserialize)]
pub(super) struct PoolProperties {
    name: Option<String>,
    port: Option<u16>,
    monitoring_port: Option<u16>,
}

/// A pool that is there, and where its members listen.
pub(super) struct Pool {
    id: String,
    port: u16,
    monitoring_port: Option<u16>,
}

pub(super) struct Membership {
    pool: String,
    member: String,
}

/// All of them, or what is wrong with one.
pub(super) fn find(session: &Session, wanted: &[PoolProperties]) -> Result<Vec<Pool>, Error> {
    const KEY: &str = "loadbalancer_pools";
    let mut pools = vec![];
    for (index, asked) in wanted.iter().enumerate() {
        let missing = |key: &str| wrong(&format!("{KEY}[{index}].{key}"), "is missing");
        let name = asked.name.as_deref().filter(|name| !name.is_empty()).ok_or_else(|| missing("name"))?;
        let port = asked.port.filter(|port| *port > 0).ok_or_else(|| missing("port"))?;
        let Some(service) = session.load_balancing()? else {
            let what = "needs the property endpoints.loadbalancer, the URL of the load-balancer service, and the preset \
                        policy-loadbalancer.json; set both, or remove it";
            return Err(wrong(KEY, what));
        };
        let mut found = service.pools_named(name)?;
        let id = match (found.pop(), found.len()) {
            (Some(pool), 0) => pool.id,
            (None, _) => return Err(wrong(KEY, &format!("there is no pool `{name}`"))),
            (Some(_), _) => return Err(wrong(KEY, &format!("several pools are called `{name}`; rename one"))),
        };
        pools.push(Pool { id, port, monitoring_port: asked.monitoring_port });
    }
    Ok(pools)
}

/// Makes the address a member of the pool, or leaves none.
pub(super) fn join(
    session: &Session,
    pool: &Pool,
    vm: &str,
    address: &str,
    subnet: Option<&str>,
) -> Result<Membership, Error> {
    let service = required(session)?;
    let joined = ask(session, &service, pool, vm, address, subnet).and_then(|member| {
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
            Err(left) => Error::cloud(format!("{error}; it is not certain that it is no member: {left}")),
        }
    })
}

fn ask(
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
    let mut left = TRIES;
    session.poll().until(&format!("pool `{}` to take a member", pool.id), || {
        let error = match service.add_member(&pool.id, &body) {
            Err(error) if unclear(&error) || error.status() == Some(409) => error,
            outcome => return Ok(Some(outcome?)),
        };
        // It is there already, or something else goes on with the load balancer.
        if let Some(member) = service.member_at(&pool.id, address, pool.port)? {
            return Ok(Some(member));
        }
        left -= u32::from(unclear(&error));
        if left == 0 {
            return Err(error.into());
        }
        log::debug(format_args!("{error}; trying again"));
        Ok(None)
    })
}

fn wait_until_active(session: &Session, service: &LoadBalancing, pool: &str, id: &str) -> Result<(), Error> {
    session.poll().until(&format!("member `{id}` to be active"), || match service.member(pool, id)? {
        Some(member) if member.provisioning_status == "ACTIVE" => Ok(Some(())),
        Some(member) if member.provisioning_status == "ERROR" => Err(Error::cloud(format!("member `{id}` failed"))),
        Some(_) => Ok(None),
        None => Err(Error::cloud(format!("member `{id}` is gone"))),
    })
}

/// Until it is certain.
pub(super) fn leave(session: &Session, Membership { pool, member }: &Membership) -> Result<(), Error> {
    let service = required(session)?;
    session.certainly(&format!("member `{member}` of pool `{pool}` to be gone"), || {
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

/// What a server's metadata says of its memberships.
pub(super) fn tags(memberships: &[Membership]) -> BTreeMap<String, String> {
    let tag = |(index, Membership { pool, member }): (usize, &Membership)| {
        (format!("{TAG}{}", index + 1), format!("{pool}/{member}"))
    };
    memberships.iter().enumerate().map(tag).collect()
}

/// Takes a server out of all pools that its metadata names. An operator who has
/// not set the service up is told what stays.
pub(super) fn leave_all(session: &Session, server: &Server) -> Result<(), Error> {
    for (key, value) in server.metadata.iter().filter(|(key, _)| key.starts_with(TAG)) {
        match (value.split_once('/'), session.properties.endpoint("loadbalancer")) {
            (Some((pool, member)), Some(_)) => {
                leave(session, &Membership { pool: pool.to_owned(), member: member.to_owned() })?;
            }
            (Some((pool, member)), None) => log::warn(format_args!(
                "VM {} stays member {member} of load balancer pool {pool}, as the property endpoints.loadbalancer is \
                 not set: delete the member yourself",
                server.id
            )),
            (None, _) => log::warn(format_args!("VM {}: {key} names no member: `{value}`", server.id)),
        }
    }
    Ok(())
}

fn required(session: &Session) -> Result<LoadBalancing, Error> {
    session.load_balancing()?.ok_or_else(|| Error::cpi("the property endpoints.loadbalancer is not set"))
}
