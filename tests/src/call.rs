//! One call of a job, built and started exactly as the Director or the CLI
//! does.

use crate::codes;
use crate::job::Job;
use crate::process::{GUARD, SignalAt, SignalWhen, run_with_signals};
use crate::response::Response;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Client {
    Director,
    Cli,
}

/// Methods for which the Director sends the API version of the VM's stemcell.
const WITH_STEMCELL: [&str; 4] = ["create_vm", "delete_vm", "attach_disk", "detach_disk"];

/// The check that is turned off in calls. Only programs built for mutation tests
/// support this.
static DISABLED_CHECK: Mutex<Option<String>> = Mutex::new(None);

/// Turns off this check in all later calls; `None` turns all checks on again.
pub fn disable_check(check: Option<&str>) {
    *DISABLED_CHECK.lock().unwrap_or_else(PoisonError::into_inner) = check.map(str::to_owned);
}

/// What a request has for a key.
#[derive(Clone, Copy)]
enum Sent<T> {
    /// What the client sends by default.
    Default,
    /// The key is absent.
    Absent,
    Value(T),
}

impl<T> Sent<T> {
    fn of(value: Option<T>) -> Sent<T> {
        value.map_or(Sent::Absent, Sent::Value)
    }

    /// Returns the value, if there is one. `default` is what the client sends.
    fn or(self, default: Option<T>) -> Option<T> {
        match self {
            Sent::Default => default,
            Sent::Absent => None,
            Sent::Value(value) => Some(value),
        }
    }
}

#[must_use]
pub struct Call<'a> {
    job: &'a Job,
    client: Client,
    method: String,
    arguments: Value,
    api_version: Sent<u32>,
    stemcell_api_version: Sent<u32>,
    context: Vec<(String, Value)>,
    stdin: Option<Vec<u8>>,
    user: Option<u32>,
    config: Option<OsString>,
    guard: Duration,
    signals: Vec<SignalAt>,
    when: Option<SignalWhen>,
    env: Vec<(String, OsString)>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(job: &'a Job, method: &str, arguments: Value) -> Call<'a> {
        Call {
            job,
            client: Client::Director,
            method: method.to_owned(),
            arguments,
            api_version: Sent::Default,
            stemcell_api_version: Sent::Default,
            context: Vec::new(),
            stdin: None,
            user: None,
            config: None,
            guard: GUARD,
            signals: Vec::new(),
            when: None,
            env: Vec::new(),
        }
    }

    pub(crate) fn raw(job: &'a Job, stdin: Vec<u8>) -> Call<'a> {
        Call { stdin: Some(stdin), ..Call::new(job, "", Value::Null) }
    }

    pub fn director(self) -> Self {
        Call { client: Client::Director, ..self }
    }

    pub fn cli(self) -> Self {
        Call { client: Client::Cli, ..self }
    }

    pub fn api_version(self, version: impl Into<Option<u32>>) -> Self {
        Call { api_version: Sent::of(version.into()), ..self }
    }

    pub fn stemcell_api_version(self, version: impl Into<Option<u32>>) -> Self {
        Call { stemcell_api_version: Sent::of(version.into()), ..self }
    }

    /// Adds a key to the request's `context`: a property of a cpi-config, or a
    /// protocol key that the test overrides.
    pub fn context(mut self, key: &str, value: Value) -> Self {
        self.context.push((key.to_owned(), value));
        self
    }

    /// Runs the program as this user and group, which only root can do.
    pub fn user(self, id: u32) -> Self {
        Call { user: Some(id), ..self }
    }

    /// Passes this file as `--config` instead of the job's own.
    pub fn config(self, path: impl Into<OsString>) -> Self {
        Call { config: Some(path.into()), ..self }
    }

    /// Sets an environment variable that the program inherits from the client.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    pub fn guard(self, guard: Duration) -> Self {
        Call { guard, ..self }
    }

    /// Sends a signal as soon as stderr contains the text.
    pub fn signal_at(mut self, text: &str, signal: Signal) -> Self {
        self.signals.push(SignalAt { text: text.to_owned(), signal });
        self
    }

    /// Sends a signal as soon as the condition is true, for example when a server
    /// has received a request.
    pub fn signal_when(self, happened: impl Fn() -> bool + Send + Sync + 'static, signal: Signal) -> Self {
        Call { when: Some(SignalWhen { happened: Arc::new(happened), signal }), ..self }
    }

    #[track_caller]
    pub fn run(self) -> Response {
        let stdin = self.stdin.clone().unwrap_or_else(|| self.request().into_bytes());
        let cli_deletes_stemcell = self.client == Client::Cli && self.method == "delete_stemcell";
        let finished =
            run_with_signals(&mut self.command(), &stdin, self.guard, self.signals.clone(), self.when.clone());
        let response = Response::parse(finished, cli_deletes_stemcell);
        codes::note_response(self.job, &response);
        response
    }

    /// Returns the command as the client starts it, for tests that handle its pipes
    /// themselves.
    pub fn command(&self) -> Command {
        let program = self.job.program();
        let mut command = Command::new(program);
        if program.ends_with("wasm-cpi") {
            command.arg("run");
        }
        let installed = self.job.is_installed();
        if !installed {
            command.arg("--config").arg(self.config.clone().unwrap_or_else(|| self.job.config_file().into()));
        }
        match self.client {
            Client::Director => {
                command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").current_dir("/");
            }
            Client::Cli => {
                let root = if installed { self.job.path("") } else { "/".into() };
                command.env("BOSH_PACKAGES_DIR", root.join("packages")).env("BOSH_JOBS_DIR", root.join("jobs"));
            }
        }
        command.envs(self.env.iter().cloned());
        if let Some(check) = DISABLED_CHECK.lock().unwrap_or_else(PoisonError::into_inner).as_deref() {
            command.env("WASM_CPI_MUTANT", check);
        }
        if let Some(id) = self.user {
            command.uid(id).gid(id);
        }
        command
    }

    /// Returns the request: one JSON document without a line feed at its end.
    pub fn request(&self) -> String {
        let mut context = json!({"director_uuid": "5f0e7d9a-6f0c-4f9d-9d53-0c9a5c0b7a11"});
        let (version, stemcell) = match self.client {
            Client::Director => {
                context["request_id"] = json!("cpi-123456");
                let with_stemcell = WITH_STEMCELL.contains(&self.method.as_str());
                ((self.method != "info").then_some(2), with_stemcell.then_some(2))
            }
            Client::Cli => (Some(if self.method == "info" { 1 } else { 2 }), Some(2)),
        };
        if let Some(stemcell) = self.stemcell_api_version.or(stemcell) {
            context["vm"] = json!({"stemcell": {"api_version": stemcell}});
        }
        for (key, value) in &self.context {
            context[key] = value.clone();
        }
        let mut request = json!({"method": self.method, "arguments": self.arguments, "context": context});
        if let Some(version) = self.api_version.or(version) {
            request["api_version"] = json!(version);
        }
        match self.client {
            Client::Director => request.to_string(),
            // Go's JSON encoder escapes the characters that are special in HTML.
            Client::Cli => {
                let escaped = [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026")];
                escaped.iter().fold(request.to_string(), |text, (plain, escaped)| text.replace(*plain, escaped))
            }
        }
    }
}
