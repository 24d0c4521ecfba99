//! Octavia. Only the members of pools are used.

use serde::Deserialize;
use serde_json::{Value, json};
use wasm_cpi_sdk::http::{self, Request, RequestError, segment};
use wasm_cpi_sdk::log;

use super::Service;

pub(crate) struct LoadBalancing(pub(crate) Service);

#[derive(Debug, Deserialize)]
pub(crate) struct Pool {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Member {
    pub(crate) id: String,
    #[serde(default)]
    address: String,
    #[serde(default)]
    protocol_port: u16,
    #[serde(default)]
    pub(crate) provisioning_status: String,
}

#[derive(Deserialize)]
struct Pools {
    pools: Vec<Pool>,
}

#[derive(Deserialize)]
struct Members {
    members: Vec<Member>,
}

#[derive(Deserialize)]
struct OneMember {
    member: Member,
}

impl LoadBalancing {
    pub(crate) fn pools_named(&self, name: &str) -> Result<Vec<Pool>, RequestError> {
        let found = self.0.read::<Pools>(self.pools_get(name))?.pools;
        Ok(found.into_iter().filter(|pool| pool.name.as_deref() == Some(name)).collect())
    }

    /// Returns the request of [`Self::pools_named`], to read it ahead.
    pub(crate) fn pools_named_request(&self, name: &str) -> Option<Request> {
        Some(self.pools_get(name))
    }

    fn pools_get(&self, name: &str) -> Request {
        http::get(self.0.url("/v2.0/lbaas/pools")).query("name", name)
    }

    /// Returns the member with this address and port. A pool has at most one.
    pub(crate) fn member_at(&self, pool: &str, address: &str, port: u16) -> Result<Option<Member>, RequestError> {
        let list = http::get(self.0.url(&format!("/v2.0/lbaas/pools/{}/members", segment(pool))))
            .query("address", address)
            .query("protocol_port", &port.to_string());
        let fits = |member: &Member| member.address == address && member.protocol_port == port;
        Ok(self.0.read::<Members>(list)?.members.into_iter().find(fits))
    }

    pub(crate) fn member(&self, pool: &str, id: &str) -> Result<Option<Member>, RequestError> {
        let path = format!("/v2.0/lbaas/pools/{}/members/{}", segment(pool), segment(id));
        Ok(self.0.find::<OneMember>(&path)?.map(|one| one.member))
    }

    pub(crate) fn add_member(&self, pool: &str, member: &Value) -> Result<Member, RequestError> {
        let path = format!("/v2.0/lbaas/pools/{}/members", segment(pool));
        let made = self.0.post::<OneMember>(&path, &json!({"member": member}))?.member;
        log::info(format_args!("created member {} of pool {pool}", made.id));
        Ok(made)
    }

    pub(crate) fn delete_member(&self, pool: &str, id: &str) -> Result<bool, RequestError> {
        let path = format!("/v2.0/lbaas/pools/{}/members/{}", segment(pool), segment(id));
        self.0.delete(&path, format_args!("member {id} of pool {pool}"))
    }
}
