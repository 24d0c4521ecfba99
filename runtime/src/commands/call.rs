//! `call`: one method by hand, with all that the guest did on the way.

use crate::audit::{Audit, Failed, Used};
use crate::commands::cli::Report;
use crate::component::prepared;
use crate::config::{Config, ConfigArg};
use crate::failure::{Failure, Who};
use crate::hardening;
use crate::limits::Limits;
use crate::log::Log;
use crate::rpc::arguments::Call;
use crate::rpc::method::Named;
use crate::rpc::request::Request;
use crate::session::{self, Observed, Session, Unsuccessful};
use crate::signals;
use crate::vault::Vault;
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Args)]
pub struct Options {
    /// A method of the contract, like create_vm
    method: String,
    /// Its arguments: JSON each, or a string
    #[arg(value_name = "ARG", allow_negative_numbers = true)]
    arguments: Vec<String>,
    #[command(flatten)]
    config: ConfigArg,
    /// API version of the caller
    #[arg(long, default_value_t = crate::rpc::API_VERSION)]
    api_version: u32,
    /// API version of the stemcell
    #[arg(long, default_value_t = 2)]
    stemcell_api_version: u32,
    /// More keys of the context, as a cpi-config gives them: a JSON object
    #[arg(long, value_name = "JSON")]
    context: Option<String>,
}

/// More of a text does not help anybody at a terminal.
const SHOWN_MAX: usize = 64 * 1024;

pub fn call(options: &Options) -> Result<Report, Failure> {
    hardening::process::at_start();
    let config = Config::load(&options.config)?;
    let request = request(options, config.api_version)?;
    let vault = Arc::new(Vault::new());
    let log = Arc::new(Log::new(config.log_level, config.log_format, None, Arc::clone(&vault)));
    let audit = Arc::new(Audit::open(config.audit.as_ref(), Some(&config), Some(&request), &log));
    let called = called(options, &config, &request, &vault, &log, &audit);
    if let Err(failure) = &called {
        audit.conclude(Err(failure.into()), None);
    }
    called
}

fn called(
    options: &Options,
    config: &Config,
    request: &Request,
    vault: &Arc<Vault>,
    log: &Arc<Log>,
    audit: &Arc<Audit>,
) -> Result<Report, Failure> {
    let Named::Known(method) = Named::from_name(&options.method) else {
        return Err(Failure::request(format!("the contract has no method {:?}", options.method)));
    };
    let call = Call::parse(method, request.arguments.clone(), request.api_version)?;
    let prepared = prepared::prepared(config.wanted(), &session::told(log, audit))?;
    audit.guest(&prepared.description);
    if method == crate::rpc::method::Method::Info {
        let formats = &prepared.description.stemcell_formats;
        audit.conclude(Ok(()), None);
        return Ok(Report::good(format!(
            "{:#}\n",
            json!({"api_version": config.api_version, "stemcell_formats": formats})
        )));
    }
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let watch = move |observed: Observed<'_>| {
        let line = match observed {
            Observed::Http(event) => format!("http     {event}"),
            Observed::Host(call) => {
                let ms = call.elapsed.as_secs_f64() * 1000.0;
                format!("host     {} ({} B, {ms:.1} ms)", call.name, call.bytes)
            }
        };
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    };
    let session = Session { config, request, call: &call, vault, log, audit, watch: Some(Arc::new(watch)) };
    signals::watch();
    let started = Instant::now();
    let ran = session::run(session, prepared)?;
    let wall = started.elapsed();
    let mut text = String::new();
    for line in events.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let _ = writeln!(text, "{line}");
    }
    let good = ran.result.is_ok();
    let outcome = ran.result.as_ref().map(drop).map_err(|unsuccessful| match unsuccessful {
        Unsuccessful::Wire(error) => Failed { error: error.kind.name(), who: Who::Guest },
        Unsuccessful::Failure(failure) => failure.into(),
    });
    audit.conclude(outcome, Some(&ran.used));
    match ran.result {
        Ok(result) => {
            let _ = writeln!(text, "result   {}", log.clean_text(&format!("{result:#}"), SHOWN_MAX));
        }
        Err(Unsuccessful::Wire(error)) => {
            let retry = if error.ok_to_retry { ", may be retried" } else { "" };
            let _ =
                writeln!(text, "error    {}{retry}: {}", error.kind.name(), log.guest_words(&error.message, SHOWN_MAX));
        }
        Err(Unsuccessful::Failure(failure)) => {
            let _ = writeln!(text, "failed   {}", log.clean_text(&failure.to_string(), SHOWN_MAX));
            for line in failure.detail.lines() {
                let _ = writeln!(text, "         {}", log.clean_text(line, SHOWN_MAX));
            }
        }
    }
    text.push_str(&usage(&ran.used, wall, &config.limits));
    Ok(Report { text, good })
}

fn request(options: &Options, max_api_version: u32) -> Result<Request, Failure> {
    let argument = |text: &String| serde_json::from_str::<Value>(text).unwrap_or_else(|_| Value::String(text.clone()));
    let arguments: Vec<Value> = options.arguments.iter().map(argument).collect();
    let mut context = match options.context.as_deref().map(serde_json::from_str::<Value>) {
        None => serde_json::Map::new(),
        Some(Ok(Value::Object(context))) => context,
        Some(_) => return Err(Failure::request("--context must be a JSON object")),
    };
    context.entry("director_uuid").or_insert_with(|| json!("wasm-cpi-call"));
    context.entry("vm").or_insert_with(|| json!({"stemcell": {"api_version": options.stemcell_api_version}}));
    let api_version = options.api_version.min(max_api_version);
    let document =
        json!({"method": options.method, "arguments": arguments, "context": context, "api_version": api_version});
    Request::parse(document.to_string().as_bytes(), max_api_version)
}

fn usage(used: &Used, wall: Duration, limits: &Limits) -> String {
    let (usage, network) = (&used.usage, &used.network);
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1000.0);
    let mut text = String::new();
    for (what, used, name, limit) in [
        ("wall", ms(wall), "wall_seconds", format!("{} s", limits.wall_seconds)),
        ("cpu", ms(usage.cpu), "cpu_seconds", format!("{} s", limits.cpu_seconds)),
        ("memory", mib(usage.peak_memory), "memory_mib", format!("{} MiB", limits.memory_mib)),
        ("host calls", usage.host_calls.to_string(), "host_calls", limits.host_calls.to_string()),
        ("requests", network.requests.to_string(), "http_requests", limits.http_requests.to_string()),
    ] {
        let _ = writeln!(text, "used     {what}: {used} of {limit} ({name})");
    }
    let _ =
        writeln!(text, "used     network: {} sent, {} received", mib(network.bytes_sent), mib(network.bytes_received));
    text
}
