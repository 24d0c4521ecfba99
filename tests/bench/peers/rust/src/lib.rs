//! The common part of the peers: reads one request from stdin and one configuration
//! from a file, and writes one response to stdout. Peers deliberately have no checks, no
//! policy and no limits.

use serde_json::{Value, json};
use std::io::{self, Read, Write};

/// Returns the request, and the configuration that `--config` names.
pub fn read() -> io::Result<(Value, Value)> {
    let mut request = Vec::new();
    io::stdin().lock().read_to_end(&mut request)?;
    let path = std::env::args_os().nth(2).ok_or_else(|| io::Error::other("usage: peer --config CPI.json"))?;
    let config = std::fs::read(path)?;
    Ok((serde_json::from_slice(&request)?, serde_json::from_slice(&config)?))
}

/// Writes a response with this result.
pub fn answer(result: &Value) -> io::Result<()> {
    let response = json!({"result": result, "error": null, "log": ""});
    let mut stdout = io::stdout().lock();
    stdout.write_all(response.to_string().as_bytes())?;
    stdout.flush()
}
