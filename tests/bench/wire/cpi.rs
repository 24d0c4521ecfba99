//! The runtime with a guest, installed as a job of the release, and what one call of it
//! sends.

use super::cloud::WireCloud;
use super::link::ONE_WAY;
use super::recording::{Exchange, Recorder};
use crate::Bench;
use crate::program::Program;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tests::Job;
use tests::gateway::{Backend, Services};
use tests::openstack::{Service, Simulator};

pub(super) struct Cpi {
    job: Job,
    /// A temporary directory with the prepared guest and the kept tokens of this job.
    _cache: tempfile::TempDir,
}

/// The cloud that calls use.
pub(super) struct Site<S = Service> {
    pub(super) recorder: Recorder<S>,
    pub(super) cloud: WireCloud<S>,
}

/// One call and what it sent.
pub(super) struct Call<S = Service> {
    pub(super) wall: Duration,
    pub(super) connections: usize,
    pub(super) exchanges: Vec<Exchange<S>>,
    pub(super) result: Value,
    /// The file with the Director's request.
    pub(super) request: PathBuf,
}

impl<S: Services> Site<S> {
    pub(super) fn new(backend: impl Backend<Service = S> + 'static) -> Site<S> {
        let recorder = Recorder::new(backend);
        Site { cloud: WireCloud::new(recorder.clone()), recorder }
    }
}

impl Site {
    /// Returns a simulated cloud whose changes complete after so many reads. Without any, no call waits for the cloud.
    pub(super) fn simulated(reads_before_change: usize) -> Site {
        let simulator = Simulator::new();
        simulator.set_reads_before_change(reads_before_change);
        Site::new(simulator)
    }
}

impl Cpi {
    /// Installs a job with the properties of this manifest, prepares its guest, and keeps no token yet.
    pub(super) fn install(mut manifest: Value) -> Result<Cpi, String> {
        let cache = tempfile::tempdir().map_err(|error| format!("cannot create a temporary directory: {error}"))?;
        manifest["cache"] = json!(cache.path());
        let job = Job::installed(&manifest);
        // The first call of a guest compiles it.
        job.call("info", json!([])).run().result();
        Ok(Cpi { job, _cache: cache })
    }

    /// Installs a job with the OpenStack guest.
    pub(super) fn openstack(site: &Site, keep_tokens: bool) -> Result<Cpi, String> {
        let cloud = site.cloud.description();
        let mut properties = json!({
            "default_key_name": cloud["key_name"], "default_security_groups": [cloud["security_group"]],
            "wait_resource_poll_interval": 1, "connection_options": {"ca_cert": cloud["ca"]},
        });
        for key in ["auth_url", "region", "username", "api_key", "domain", "project", "endpoints"] {
            properties[key] = cloud[key].clone();
        }
        Cpi::install(json!({
            "guest": {"file": "openstack.wasm"}, "allow_local": true, "openstack": properties,
            "keep_tokens": keep_tokens, "agent": {"mbus": "nats://127.0.0.1:4222"},
            "policy": {"presets": [{
                "package": "wasm-cpi-guests", "file": "openstack.json", "addresses": ["127.0.0.0/8"],
                "tls": {"ca": "${connection_options.ca_cert}"},
            }]},
        }))
    }

    /// Returns the program that runs a call as a Director starts it, and the file with its request.
    pub(super) fn program(&self, bench: &Bench, method: &str, arguments: Value) -> (Program, PathBuf) {
        let request = bench.write(&format!("{method}.json"), self.job.call(method, arguments).request());
        (Program::new(method, &[self.job.program()], &request), request)
    }

    /// Runs one call.
    pub(super) fn call<S: Services>(
        &self,
        bench: &Bench,
        site: &Site<S>,
        method: &str,
        arguments: Value,
    ) -> Result<Call<S>, String> {
        let (program, request) = self.program(bench, method, arguments);
        site.recorder.take();
        let before = site.cloud.connections();
        let (sample, output) = program.run_with_output()?;
        let connections = site.cloud.connections() - before;
        let response: Value = serde_json::from_str(&output).map_err(|error| format!("{method}: {error}: {output}"))?;
        let (exchanges, result) = (site.recorder.take(), response["result"].clone());
        Ok(Call { wall: sample.wall, connections, exchanges, result, request })
    }

    /// Writes the image of a stemcell as a client unpacks it.
    pub(super) fn image(bench: &Bench) -> PathBuf {
        let disk = b"a little root disk".repeat(1000);
        bench.write("image", tests::archive::gzip(&tests::archive::tar(&[("root.img", &disk)])))
    }
}

impl<S: Services> Call<S> {
    pub(super) fn logins(&self) -> usize {
        self.exchanges.iter().filter(|exchange| exchange.is_login()).count()
    }

    /// Returns the number of distinct connection keys: all requests of the preset to a service, and the
    /// login, have the same TLS settings, identity and proxy, so the keys differ in their origins only.
    pub(super) fn connection_keys(&self) -> usize {
        self.services().count()
    }

    /// Returns how many connections the call needs: for each key as many as it has requests at once. A request
    /// that waits for another one arrives at least a round trip later.
    pub(super) fn connections_needed(&self) -> usize {
        let at_once = |service| {
            let arrivals = || self.exchanges.iter().filter(move |one| one.service == service).map(|one| one.arrived);
            let together = |first: Instant| arrivals().filter(|one| *one >= first && *one - first < ONE_WAY).count();
            arrivals().map(together).max().unwrap_or_default()
        };
        self.services().map(at_once).sum()
    }

    /// Returns the services that got a request.
    fn services(&self) -> impl Iterator<Item = S> {
        S::ALL.iter().copied().filter(|service| self.exchanges.iter().any(|one| one.service == *service))
    }
}
