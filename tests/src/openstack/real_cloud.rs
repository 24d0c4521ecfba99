//! Real services as a gateway's backend, over HTTP.

use super::message::{Request, Response};
use super::service::Service;
use crate::gateway::{Backend, wire};
use serde_json::Value;
use std::io::{self, BufReader, Read};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// The timeout of a request. Real services are slow on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(180);

/// The environment variable with the path of a real cloud's `cloud.json`.
const VARIABLE: &str = "WASM_CPI_OPENSTACK";

/// A real cloud, described by its `cloud.json`.
#[derive(Clone)]
pub struct RealCloud {
    cloud: Value,
}

impl RealCloud {
    pub fn new(cloud: Value) -> RealCloud {
        RealCloud { cloud }
    }

    /// Reads the file that the environment variable names; `None` if it is not set.
    #[track_caller]
    pub fn from_environment() -> Option<RealCloud> {
        let path = std::path::PathBuf::from(std::env::var_os(VARIABLE)?);
        Some(RealCloud::from_file(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    /// Reads the file that `cargo xtask cloud up openstack` wrote.
    pub fn from_file(path: &std::path::Path) -> io::Result<RealCloud> {
        let cloud = serde_json::from_slice(&std::fs::read(path)?)?;
        Ok(RealCloud { cloud })
    }

    /// Returns the same cloud once for each tenant for tests.
    pub fn tenants(&self) -> Vec<RealCloud> {
        let own = self.cloud["tenants"].as_array().into_iter().flatten().filter_map(Value::as_object);
        let seen = own.map(|own| {
            let mut cloud = self.cloud.clone();
            cloud["tenants"].take();
            for (key, value) in own {
                cloud[key] = value.clone();
            }
            RealCloud { cloud }
        });
        seen.collect()
    }
}

impl Backend for RealCloud {
    type Service = Service;

    fn answer(&self, service: Service, request: &Request, body: &mut dyn Read) -> io::Result<Response> {
        let origin = service.origin(&self.cloud).ok_or_else(|| other(&format!("no URL for {service:?}")))?;
        let host = origin.strip_prefix("http://").ok_or_else(|| other(&format!("{origin} is not plain HTTP")))?;
        let stream = TcpStream::connect(host)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let written = wire::write_request(&mut &stream, request, host, body);
        // The client disconnected in the middle of its request, so no answer is needed.
        if let Err(error) = &written
            && error.kind() == io::ErrorKind::UnexpectedEof
        {
            let _ = stream.shutdown(Shutdown::Both);
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // A service may answer and close the connection before it has read the whole request.
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
