//! `call`: calls one method by hand, and shows what the guest did.

use crate::audit::Used;
use crate::call::{CallError, Observed, Observer, Record, Settled};
use crate::commands::context_file;
use crate::commands::report::Report;
use crate::commands::run;
use crate::config::{Config, ConfigFile, ConfigSource, EarlySettings};
use crate::failure::Failure;
use crate::host::HostCallOutcome;
use crate::limits::Limits;
use crate::log::Log;
use crate::rpc::method::{Method, MethodName};
use crate::rpc::request::Request;
use crate::signals;
use crate::startup;
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wasm_cpi_checks::with_code;

#[derive(Args)]
pub struct CallOptions {
    /// CPI method, for example has_vm
    method: String,
    /// Arguments of the method. Each is parsed as JSON; text that is not JSON is a string
    #[arg(value_name = "ARG", allow_negative_numbers = true)]
    arguments: Vec<String>,
    #[command(flatten)]
    config: ConfigSource,
    /// API version of the caller; at most the version that `info` returns is used
    #[arg(long, default_value_t = crate::rpc::API_VERSION)]
    api_version: u32,
    /// API version of the stemcell
    #[arg(long, default_value_t = 2)]
    stemcell_api_version: u32,
    /// File with the properties of a cpi-config, a JSON object; `-` is stdin
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,
}

/// The longest text that is shown, because more is of no use at a terminal.
const SHOWN_MAX: usize = 64 * 1024;

pub fn call(options: &CallOptions) -> Result<Report, Failure> {
    startup::secure_process();
    let file = ConfigFile::read(&options.config)?;
    let config = Config::of(file.clone())?;
    let request = request(options, config.api_version)?;
    let record = Record::open(&EarlySettings::of(Some(&file)), Some(&request));
    let events = Arc::new(Mutex::new(Vec::new()));
    signals::record_from_now_on();
    let served = method(&options.method)
        .map_err(CallError::from)
        .and_then(|method| run::serve(file, method, request, &record, Some(observer(&events))));
    let Settled { result, used, .. } = served.unwrap_or_else(Settled::failed);
    record.audit.conclude(result.as_ref().map(drop).map_err(CallError::audited), used.as_ref());
    let Some(used) = used else {
        return match result {
            Ok(info) => Ok(Report::good(format!("{info:#}\n"))),
            Err(CallError::Failure(failure)) => Err(failure),
            Err(error) => Ok(Report { text: outcome(Err(error), &record.log), good: false }),
        };
    };
    let good = result.is_ok();
    let mut text = String::new();
    for line in events.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let _ = writeln!(text, "{}", record.log.clean_text(line, SHOWN_MAX));
    }
    text.push_str(&outcome(result, &record.log));
    text.push_str(&usage(&used, &config.limits));
    Ok(Report { text, good })
}

/// Returns the CPI method of this name. The message of an error is for an operator, and not for the Director.
fn method(name: &str) -> Result<Method, Failure> {
    match MethodName::parse(name) {
        MethodName::Known(method) => Ok(method),
        _ => Err(Failure::request(format!(
            "there is no CPI method {name:?}; `wasm-cpi inspect` lists the methods of a guest"
        ))),
    }
}

/// Returns an observer that adds one line for each request and host call of the guest.
fn observer(events: &Arc<Mutex<Vec<String>>>) -> Observer {
    let events = Arc::clone(events);
    Arc::new(move |observed: Observed<'_>| {
        let line = match observed {
            Observed::Http(event) => format!("http     {event}"),
            Observed::Host(call) => {
                let ms = call.elapsed.as_secs_f64() * 1000.0;
                let name = match &call.outcome {
                    HostCallOutcome::Succeeded => call.name.to_owned(),
                    HostCallOutcome::Denied(reason) => format!("{} denied({reason})", call.name),
                    HostCallOutcome::Refused(why) | HostCallOutcome::Failed(why) => format!("{} {why}", call.name),
                };
                format!("host     {} ({} B, {ms:.1} ms)", with_code(&name, call.check), call.bytes)
            }
        };
        events.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    })
}

fn outcome(result: Result<Value, CallError>, log: &Log) -> String {
    let mut text = String::new();
    match result {
        Ok(result) => {
            let _ = writeln!(text, "result   {}", log.clean_text(&format!("{result:#}"), SHOWN_MAX));
        }
        Err(CallError::Protocol { error, .. }) => {
            let retry = if error.ok_to_retry { ", may be retried" } else { "" };
            let _ = writeln!(
                text,
                "error    {}{retry}: {}",
                error.kind.name(),
                log.clean_guest_text(&error.message, SHOWN_MAX)
            );
        }
        Err(CallError::Failure(failure)) => {
            let message = log.clean_text(&failure.to_string(), SHOWN_MAX);
            let _ = writeln!(text, "failed   {}", with_code(&message, failure.check));
            for line in failure.detail.lines() {
                let _ = writeln!(text, "         {}", log.clean_text(line, SHOWN_MAX));
            }
        }
    }
    text
}

fn request(options: &CallOptions, max_api_version: u32) -> Result<Request, Failure> {
    let argument = |text: &String| serde_json::from_str::<Value>(text).unwrap_or_else(|_| Value::String(text.clone()));
    let arguments: Vec<Value> = options.arguments.iter().map(argument).collect();
    let mut context = context_file::read(options.context.as_deref())?;
    context.entry("director_uuid").or_insert_with(|| json!("wasm-cpi-call"));
    context.entry("vm").or_insert_with(|| json!({"stemcell": {"api_version": options.stemcell_api_version}}));
    let api_version = options.api_version.min(max_api_version);
    let document =
        json!({"method": options.method, "arguments": arguments, "context": context, "api_version": api_version});
    Request::parse(document.to_string().as_bytes(), max_api_version)
}

fn usage(used: &Used, limits: &Limits) -> String {
    let (usage, network) = (&used.usage, &used.network);
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1000.0);
    let mut text = String::new();
    for (what, used, name, limit) in [
        ("wall", ms(used.wall), used.wall_limit.name, format!("{} s", used.wall_limit.value)),
        ("cpu", ms(usage.cpu), "cpu_seconds", format!("{} s", limits.cpu_seconds)),
        ("memory", mib(usage.peak_memory_bytes), "memory_mib", format!("{} MiB", limits.memory_mib)),
        ("host calls", usage.host_calls.to_string(), "host_calls", limits.host_calls.to_string()),
        ("requests", network.requests.to_string(), "http_requests", limits.http_requests.to_string()),
    ] {
        let _ = writeln!(text, "used     {what}: {used} of {limit} ({name})");
    }
    if network.blocks > 0 {
        let _ = writeln!(text, "used     blocks: {} of {} (http_blocks)", network.blocks, limits.http_blocks);
    }
    let _ =
        writeln!(text, "used     network: {} sent, {} received", mib(network.bytes_sent), mib(network.bytes_received));
    text
}
