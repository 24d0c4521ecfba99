//! `bench --wire`: what calls of the OpenStack guest, and `create_vm` of the AWS guest
//! (`aws`), cost on a network with a round trip of 20 ms and TLS.
//!
//! The runtime runs as in a deployment: the job of the release, one process of `bin/cpi`
//! per call. Between it and the simulator, which is served with TLS, there is one `link`
//! per service. The peer (`peer`) is a Go program that sends the same requests over kept
//! connections, and logs in once per process or signs every request (`access`), as a
//! native CPI does. It sends them to a server that answers as the simulator has answered
//! the runtime (`recording`), so both send and receive the same requests and responses.
//! The peer sends them one after the other.
//!
//! `blocks` uploads an image in blocks with the probe, beside processes of curl.
//!
//! Times here are mostly round trips, which do not depend on the machine. Connections,
//! requests and logins are counted where they arrive.

mod access;
mod aws;
mod blocks;
mod cloud;
mod cpi;
mod lifecycle;
mod link;
mod logins;
mod methods;
mod peer;
mod recording;
mod script;

use crate::Part;

pub(crate) const PARTS: [Part; 5] = [
    ("methods", methods::measure),
    ("logins", logins::measure),
    ("lifecycle", lifecycle::measure),
    ("aws", aws::measure),
    ("blocks", blocks::measure),
];
