//! The session with the cloud: the catalog and the project that the host's login
//! shows (never a token), the endpoint of each service, and how long to wait for
//! the cloud. The host decides which requests are allowed; the error of a denial
//! names the property that the operator has to set.

use std::cell::OnceCell;
use std::time::Duration;

use serde::Deserialize;
use wasm_cpi_sdk::http::{self, Denial};
use wasm_cpi_sdk::{Error, clock, log, poll::Poll};

use crate::api::{Compute, Images, LoadBalancing, Networking, ReadAhead, Service, Volumes};
use crate::properties::Properties;

/// The name of the login in the policy presets.
const LOGIN: &str = "keystone";

/// The number of login attempts if Keystone cannot be reached or fails. A refusal
/// is not retried.
const LOGIN_ATTEMPTS: u32 = 4;

/// The number of checks when the call is ending and sleeps fail.
const CHECKS_WITHOUT_SLEEP: u32 = 200;

/// The services of the cloud that the CPI uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServiceKind {
    Compute,
    Image,
    Network,
    Volume,
    LoadBalancer,
}

impl ServiceKind {
    /// Returns the name of the service in the property `endpoints`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Image => "image",
            Self::Network => "network",
            Self::Volume => "volume",
            Self::LoadBalancer => "loadbalancer",
        }
    }

    /// Returns the types of the service in the catalog, the best first.
    fn catalog_types(self) -> &'static [&'static str] {
        match self {
            Self::Compute => &["compute"],
            Self::Image => &["image"],
            Self::Network => &["network"],
            Self::Volume => &["volumev3", "block-storage"],
            Self::LoadBalancer => &["load-balancer"],
        }
    }

    /// Returns the version that the guest's paths start with. Some catalogs have
    /// it in the URL of the endpoint as well.
    fn version(self) -> &'static str {
        match self {
            Self::Image => "/v2",
            Self::Network | Self::LoadBalancer => "/v2.0",
            Self::Compute | Self::Volume => "",
        }
    }
}

#[derive(Debug, Deserialize)]
struct Login {
    #[serde(default)]
    catalog: Vec<Entry>,
    project_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    endpoints: Vec<Endpoint>,
}

#[derive(Debug, Deserialize)]
struct Endpoint {
    interface: String,
    region: Option<String>,
    region_id: Option<String>,
    url: String,
}

impl Endpoint {
    fn region(&self) -> &str {
        self.region_id.as_deref().or(self.region.as_deref()).unwrap_or_default()
    }
}

fn log_in() -> Result<Login, http::RequestError> {
    let mut pause = Duration::from_secs(1);
    for _ in 1..LOGIN_ATTEMPTS {
        match http::session(LOGIN) {
            Err(error) if is_transient(&error) => {
                log::warn(format_args!("{error}; retrying in {} s", pause.as_secs()));
                if clock::sleep(pause).is_err() {
                    return Err(error);
                }
            }
            outcome => return outcome,
        }
        pause *= 2;
    }
    http::session(LOGIN)
}

fn is_transient(error: &http::RequestError) -> bool {
    use http::TransportError::{Connect, Dns, Protocol, Timeout, Truncated};
    matches!(&error.cause, http::Cause::Transport { kind: Dns | Connect | Timeout | Protocol | Truncated, .. })
}

pub(crate) struct Session {
    pub(crate) properties: Properties,
    /// What was read ahead, for all services.
    pub(crate) ahead: ReadAhead,
    login: OnceCell<Login>,
}

impl Session {
    /// Reads the properties. The login happens when the cloud is first used.
    pub(crate) fn open() -> Result<Self, Error> {
        Ok(Self { properties: Properties::read()?, ahead: ReadAhead::default(), login: OnceCell::new() })
    }

    pub(crate) fn compute(&self) -> Result<Compute, Error> {
        self.service(ServiceKind::Compute).map(Compute)
    }

    pub(crate) fn images(&self) -> Result<Images, Error> {
        self.service(ServiceKind::Image).map(Images)
    }

    pub(crate) fn networking(&self) -> Result<Networking, Error> {
        self.service(ServiceKind::Network).map(Networking)
    }

    pub(crate) fn volumes(&self) -> Result<Volumes, Error> {
        self.service(ServiceKind::Volume).map(Volumes)
    }

    /// Returns `None` if the operator has not configured the service.
    pub(crate) fn load_balancing(&self) -> Result<Option<LoadBalancing>, Error> {
        let set = self.properties.endpoint(ServiceKind::LoadBalancer.name());
        set.map(|_| self.service(ServiceKind::LoadBalancer).map(LoadBalancing)).transpose()
    }

    /// Returns the project of the token.
    pub(crate) fn project(&self) -> Result<Option<&str>, Error> {
        Ok(self.login()?.project_id.as_deref())
    }

    /// Returns how to wait for the cloud: with short pauses first, then with those
    /// that the operator set.
    pub(crate) fn poll(&self) -> Poll {
        let longest_pause = self.properties.poll_interval();
        Poll {
            first_pause: Duration::from_millis(250).min(longest_pause),
            longest_pause,
            jitter: false,
            timeout: self.properties.state_timeout(),
            remedy: Some("raise the property `state_timeout` if the cloud needs longer"),
        }
    }

    /// Waits for a state that must be certain even if the call is ending. Then sleeps
    /// fail, and it asks a limited number of times without pauses.
    pub(crate) fn wait_until_certain<T>(
        &self,
        what: &str,
        mut ask: impl FnMut() -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        let outcome = self.poll().until(what, &mut ask);
        if outcome.is_err() && clock::ending().is_some() {
            for _ in 0..CHECKS_WITHOUT_SLEEP {
                if let Some(answer) = ask()? {
                    return Ok(answer);
                }
            }
        }
        outcome
    }

    fn login(&self) -> Result<&Login, Error> {
        if let Some(login) = self.login.get() {
            return Ok(login);
        }
        let login = log_in().map_err(|error| match error.denial() {
            Some(Denial::Undeclared) => {
                let preset = self.properties.preset();
                Error::cpi(format!("{error}; the policy has no login `{LOGIN}`; use the preset {preset} of this guest"))
            }
            _ => Error::from(error).context("logging in"),
        })?;
        if let (Some(wanted), Some(got)) = (&self.properties.project_id, &login.project_id)
            && !wanted.is_empty()
            && wanted != got
        {
            return Err(Error::cpi(format!(
                "properties.project_id: expected a login for project `{wanted}`, but the login is for project `{got}`; \
                 use the preset {}, which logs in by project_id",
                self.properties.preset()
            )));
        }
        Ok(self.login.get_or_init(|| login))
    }

    fn service(&self, kind: ServiceKind) -> Result<Service, Error> {
        let interface = self.properties.interface()?;
        let catalog = &self.login()?.catalog;
        // Some catalogs have one entry per region.
        let of_type = |wanted: &&str| -> Vec<&Endpoint> {
            let entries = catalog.iter().filter(|entry| entry.kind == *wanted);
            entries.flat_map(|entry| &entry.endpoints).filter(|endpoint| endpoint.interface == interface).collect()
        };
        let endpoints = kind.catalog_types().iter().map(of_type).find(|found| !found.is_empty()).unwrap_or_default();
        let mut regions: Vec<&str> = endpoints.iter().map(|endpoint| endpoint.region()).collect();
        regions.sort_unstable();
        regions.dedup();
        let wanted = self.properties.region.as_deref().filter(|region| !region.is_empty());
        let missing = |what: String| {
            let name = kind.name();
            Error::cpi(format!("the catalog has no usable {interface} endpoint for the {name} service: {what}"))
        };
        let found = match (wanted, regions.as_slice()) {
            (_, []) => {
                return Err(missing(
                    "it has none; check the property `endpoint_type`, or add one to the catalog".to_owned(),
                ));
            }
            (None, [_, _, ..]) => {
                let list = regions.join(", ");
                return Err(missing(format!("it has several regions ({list}); set the property `region`")));
            }
            (None, _) => endpoints.first(),
            (Some(region), _) => endpoints.iter().find(|endpoint| endpoint.region() == region),
        };
        let endpoint = found.ok_or_else(|| {
            let (wanted, list) = (wanted.unwrap_or_default(), regions.join(", "));
            missing(format!("it has no region `{wanted}`; set the property `region` to one of {list}"))
        })?;
        let url = endpoint.url.trim_end_matches('/');
        let url = url.strip_suffix(kind.version()).unwrap_or(url);
        Ok(Service::new(kind, url, self.properties.endpoint(kind.name()), self.ahead.clone()))
    }
}
