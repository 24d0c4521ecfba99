//! The operations of a script: one for every host function, some for WASI, and some
//! for misbehavior. Each returns a value or a [`Failure`]. The operations that choose
//! the result of the method are in `runner`.

mod agent;
mod http;
mod misbehavior;
mod storage;
mod system;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use wasm_cpi_sdk::host;

use crate::garbage::Garbage;
use crate::memory;

pub(crate) use agent::hint;

/// Every operation and its parameters.
#[derive(Deserialize)]
#[serde(tag = "op", deny_unknown_fields)]
pub(crate) enum Op {
    #[serde(rename = "http")]
    Http(http::Request),
    #[serde(rename = "http.all")]
    HttpAll { requests: Vec<http::Request> },
    #[serde(rename = "http.blocks")]
    HttpBlocks(http::Blocks),
    #[serde(rename = "session")]
    Session { name: String },
    #[serde(rename = "config")]
    Config {},
    #[serde(rename = "call")]
    Call {},

    #[serde(rename = "agent.bootstrap")]
    Bootstrap(agent::Bootstrap),
    #[serde(rename = "agent.created")]
    Created { vm: String, key: String },
    #[serde(rename = "agent.attached")]
    Attached { key: String, disk: String, hint: Value },
    #[serde(rename = "agent.detached")]
    Detached { key: String, disk: String },
    #[serde(rename = "agent.deleted")]
    Deleted { key: String },

    #[serde(rename = "registry.get")]
    RegistryGet { id: String },
    #[serde(rename = "registry.put")]
    RegistryPut { id: String, settings: Value },
    #[serde(rename = "registry.delete")]
    RegistryDelete { id: String },

    #[serde(rename = "image.size")]
    ImageSize {},
    #[serde(rename = "image.sha256")]
    ImageSha256 {},
    #[serde(rename = "image.read")]
    ImageRead { offset: u64, length: u32 },
    #[serde(rename = "image.members")]
    ImageMembers {},
    #[serde(rename = "image.read_member")]
    ImageReadMember { name: String, length: u32 },

    #[serde(rename = "log")]
    Log { level: Option<system::Level>, message: String },
    #[serde(rename = "print")]
    Print { stream: Option<system::Stream>, text: String },
    #[serde(rename = "clock.now")]
    Now {},
    #[serde(rename = "clock.monotonic")]
    Monotonic {},
    #[serde(rename = "clock.sleep")]
    Sleep { ms: u64 },
    #[serde(rename = "clock.ending")]
    Ending {},
    #[serde(rename = "random")]
    Random { count: u32 },

    #[serde(rename = "env")]
    Env {},
    #[serde(rename = "args")]
    Args {},
    #[serde(rename = "stdin")]
    Stdin {},
    #[serde(rename = "fs")]
    Fs(system::File),
    #[serde(rename = "wasi.now")]
    WasiNow {},
    #[serde(rename = "wasi.sleep")]
    WasiSleep { ms: u64 },
    #[serde(rename = "wasi.random")]
    WasiRandom {},

    #[serde(rename = "find")]
    Find(memory::Needle),
    #[serde(rename = "loop")]
    Loop {},
    #[serde(rename = "spin_ms")]
    Spin { ms: u64 },
    #[serde(rename = "grow")]
    Grow { mib: usize },
    #[serde(rename = "recurse")]
    Recurse { frames: Option<misbehavior::Frames> },
    #[serde(rename = "exit")]
    Exit { code: i32 },
    #[serde(rename = "panic")]
    Panic { message: String },
    #[serde(rename = "trap")]
    Trap {},

    #[serde(rename = "error")]
    Error { kind: String, message: Option<String>, ok_to_retry: Option<bool> },
    #[serde(rename = "result")]
    Result { json: Value },
    #[serde(rename = "garbage")]
    Garbage(Garbage),
}

/// The failure of an operation, as it appears in the outcomes.
#[derive(Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) kind: String,
    pub(crate) message: String,
    /// Further keys.
    pub(crate) more: Map<String, Value>,
}

impl Failure {
    pub(crate) fn new(kind: &str, message: impl Into<String>) -> Self {
        Self { kind: kind.to_owned(), message: message.into(), more: Map::new() }
    }

    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.more.insert(key.to_owned(), value.into());
        self
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.kind == "cancelled"
    }
}

impl From<Failure> for Value {
    fn from(failure: Failure) -> Self {
        let mut object = failure.more;
        object.insert("kind".to_owned(), failure.kind.into());
        object.insert("message".to_owned(), failure.message.into());
        Self::Object(object)
    }
}

/// Performs an operation. The operations that choose the result do nothing here.
pub(crate) fn perform(op: &Op) -> Result<Value, Failure> {
    let host = host::current();
    match op {
        Op::Http(request) => http::send(request),
        Op::HttpAll { requests } => http::send_all(requests),
        Op::HttpBlocks(blocks) => http::send_blocks(blocks),
        Op::Session { name } => host.http_session(name).map(json_or_text).map_err(http::failure),
        Op::Config {} => Ok(json_or_text(host.properties())),
        Op::Call {} => Ok(system::call()),

        Op::Bootstrap(settings) => agent::bootstrap(settings),
        Op::Created { vm, key } => agent::done(host.agent_created(vm, key)),
        Op::Attached { key, disk, hint } => agent::done(host.agent_attached(key, disk, &self::hint(hint))),
        Op::Detached { key, disk } => agent::done(host.agent_detached(key, disk)),
        Op::Deleted { key } => agent::done(host.agent_deleted(key)),

        Op::RegistryGet { id } => storage::registry(host.registry_get(id).map(json_or_text)),
        Op::RegistryPut { id, settings } => storage::registry(host.registry_put(id, &as_json(settings))),
        Op::RegistryDelete { id } => storage::registry(host.registry_delete(id)),

        Op::ImageSize {} => storage::image(host.image_size()),
        Op::ImageSha256 {} => storage::image(host.image_sha256()),
        Op::ImageRead { offset, length } => storage::image(host.image_read(*offset, *length).map(bytes_as_json)),
        Op::ImageMembers {} => storage::image(host.image_members().map(storage::members)),
        Op::ImageReadMember { name, length } => {
            storage::image(host.image_read_member(name, *length).map(bytes_as_json))
        }

        Op::Log { level, message } => Ok(system::log(*level, message)),
        Op::Print { stream, text } => system::print(*stream, text),
        Op::Now {} => Ok(host.now_ms().into()),
        Op::Monotonic {} => Ok(host.monotonic_ns().into()),
        Op::Sleep { ms } => host.sleep(*ms).map(Value::from).map_err(|why| Failure::new("cancelled", why)),
        Op::Ending {} => Ok(host.ending().into()),
        Op::Random { count } => Ok(bytes_as_json(host.random(*count))),

        Op::Env {} => Ok(system::env()),
        Op::Args {} => Ok(system::args()),
        Op::Stdin {} => system::stdin(),
        Op::Fs(file) => file.access(),
        Op::WasiNow {} => Ok(system::wasi_now()),
        Op::WasiSleep { ms } => Ok(system::wasi_sleep(*ms)),
        Op::WasiRandom {} => Ok(system::wasi_random()),

        Op::Find(needle) => needle.find(),
        Op::Loop {} => misbehavior::forever(),
        Op::Spin { ms } => Ok(misbehavior::spin(*ms)),
        Op::Grow { mib } => misbehavior::grow(*mib),
        Op::Recurse { frames } => Ok(misbehavior::recurse(*frames)),
        Op::Exit { code } => std::process::exit(*code),
        Op::Panic { message } => panic!("{message}"),
        Op::Trap {} => misbehavior::trap(),

        Op::Error { .. } | Op::Result { .. } | Op::Garbage(_) => Ok(Value::Null),
    }
}

/// Returns bytes for the outcomes: as text if they are UTF-8, and otherwise in base64.
fn bytes_as_json(bytes: Vec<u8>) -> Value {
    let length = bytes.len();
    match String::from_utf8(bytes) {
        Ok(text) => json!({"bytes": length, "text": text}),
        Err(error) => json!({"bytes": length, "base64": crate::encoding::to_base64(error.as_bytes())}),
    }
}

fn json_or_text(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// Returns a value as JSON text. A string is returned unchanged, so that scripts can
/// send text that is not JSON.
fn as_json(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
