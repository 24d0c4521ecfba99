//! Real services, reached over HTTP.

use super::message::{Request, Response};
use super::service::{Backend, Service};
use super::wire;
use serde_json::Value;
use std::io::{self, BufReader, Read};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Longer than any real service takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// Names the `cloud.json` of a real cloud that tests may use.
const VARIABLE: &str = "WASM_CPI_OPENSTACK";

/// A cloud that wrote this about itself.
#[derive(Clone)]
pub struct Real {
    cloud: Value,
}

impl Real {
    pub fn new(cloud: Value) -> Real {
        Real { cloud }
    }

    /// By the file that the environment names; None if it names none.
    #[track_caller]
    pub fn from_environment() -> Option<Real> {
        let path = std::path::PathBuf::from(std::env::var_os(VARIABLE)?);
        Some(Real::from_file(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    /// By the file that `cargo xtask cloud up openstack` wrote.
    pub fn from_file(path: &std::path::Path) -> io::Result<Real> {
        let cloud = serde_json::from_slice(&std::fs::read(path)?)?;
        Ok(Real { cloud })
    }

    /// The same cloud as each of its tenants sees it, if it names any.
    pub fn tenants(&self) -> Vec<Real> {
        let own = self.cloud["tenants"].as_array().into_iter().flatten().filter_map(Value::as_object);
        let seen = own.map(|own| {
            let mut cloud = self.cloud.clone();
            cloud["tenants"].take();
            for (key, value) in own {
                cloud[key] = value.clone();
            }
            Real { cloud }
        });
        seen.collect()
    }
}

impl Backend for Real {
    fn answer(&self, service: Service, request: &Request, body: &mut dyn Read) -> io::Result<Response> {
        let origin = service.origin(&self.cloud).ok_or_else(|| other(&format!("no URL for {service:?}")))?;
        let host = origin.strip_prefix("http://").ok_or_else(|| other(&format!("{origin} is not plain HTTP")))?;
        let stream = TcpStream::connect(host)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let written = wire::write_request(&mut &stream, request, host, body);
        // Who went away while it spoke is not to be answered for.
        if let Err(error) = &written
            && error.kind() == io::ErrorKind::UnexpectedEof
        {
            let _ = stream.shutdown(Shutdown::Both);
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // A service may answer before it has read all, and hang up on the rest.
        wire::read_response(&mut BufReader::new(&stream), &request.method)
            .map_err(|error| written.err().unwrap_or(error))
    }

    fn cloud(&self) -> Value {
        self.cloud.clone()
    }
}

fn other(message: &str) -> io::Error {
    io::Error::other(message.to_owned())
}
