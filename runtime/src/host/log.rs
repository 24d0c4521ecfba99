//! The interface `log`: translates between the WIT types and `crate::log`.

use crate::bindings::bosh::cpi::log::{Host, Level};
use crate::host::GuestState;

impl Host for GuestState {
    fn log(&mut self, level: Level, message: String) {
        self.counts.log += 1;
        let host_call = self.start_host_call("log.log", "");
        if let Some(capabilities) = &self.capabilities {
            capabilities.log.write(level.into(), &message);
        }
        host_call.succeed(message.len());
    }
}

impl From<Level> for crate::log::Level {
    fn from(level: Level) -> Self {
        match level {
            Level::Debug => Self::Debug,
            Level::Info => Self::Info,
            Level::Warn => Self::Warn,
            Level::Error => Self::Error,
        }
    }
}
