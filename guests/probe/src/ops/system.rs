//! Logs, output, and the parts of WASI: environment, arguments, files, clocks and
//! random numbers.

use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use wasm_cpi_sdk::{config, log};

use super::{Failure, bytes_as_json};

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// A path to read, to list as a directory, or to write a text to.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    path: String,
    #[serde(default)]
    list: bool,
    write: Option<String>,
}

impl File {
    pub(super) fn access(&self) -> Result<Value, Failure> {
        let outcome = match &self.write {
            Some(text) => std::fs::write(&self.path, text).map(Value::from),
            None if self.list => std::fs::read_dir(&self.path).map(|entries| {
                entries.flatten().map(|entry| Value::from(entry.file_name().to_string_lossy())).collect()
            }),
            None => std::fs::read(&self.path).map(bytes_as_json),
        };
        outcome.map_err(|error| io(&error))
    }
}

fn io(error: &std::io::Error) -> Failure {
    Failure::new("io", error.to_string())
}

pub(super) fn call() -> Value {
    let call = config::call();
    json!({
        "method": call.method,
        "director_uuid": call.director_uuid,
        "request_id": call.request_id,
        "api_version": call.api_version,
        "stemcell_api_version": call.stemcell_api_version,
    })
}

pub(super) fn log(level: Option<Level>, message: &str) -> Value {
    match level.unwrap_or(Level::Info) {
        Level::Debug => log::debug(message),
        Level::Info => log::info(message),
        Level::Warn => log::warn(message),
        Level::Error => log::error(message),
    }
    Value::Null
}

pub(super) fn print(stream: Option<Stream>, text: &str) -> Result<Value, Failure> {
    fn all(mut stream: impl Write, text: &str) -> std::io::Result<()> {
        stream.write_all(text.as_bytes())?;
        stream.flush()
    }
    match stream.unwrap_or(Stream::Stdout) {
        Stream::Stdout => all(std::io::stdout(), text),
        Stream::Stderr => all(std::io::stderr(), text),
    }
    .map(Value::from)
    .map_err(|error| io(&error))
}

pub(super) fn env() -> Value {
    let pair = |(key, value): (std::ffi::OsString, std::ffi::OsString)| {
        (key.to_string_lossy().into_owned(), Value::from(value.to_string_lossy()))
    };
    Value::Object(std::env::vars_os().map(pair).collect::<Map<_, _>>())
}

pub(super) fn args() -> Value {
    std::env::args_os().map(|argument| Value::from(argument.to_string_lossy())).collect()
}

pub(super) fn stdin() -> Result<Value, Failure> {
    let mut bytes = vec![];
    std::io::stdin().read_to_end(&mut bytes).map_err(|error| io(&error))?;
    Ok(bytes_as_json(bytes))
}

pub(super) fn wasi_now() -> Value {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX).into()
}

pub(super) fn wasi_sleep(ms: u64) -> Value {
    std::thread::sleep(Duration::from_millis(ms));
    Value::Null
}

/// Returns a number from WASI's random generator.
pub(super) fn wasi_random() -> Value {
    RandomState::new().hash_one(0).into()
}
