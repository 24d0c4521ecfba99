//! The state of one guest: its capabilities, and what it uses.

use crate::host::{Capabilities, HostCallCounts};
use crate::limits::{Limits, NamedLimit};
use crate::log::Level;
use crate::sandbox::call_clock::{CallClock, CleanupOver, EndReason};
use crate::sandbox::meter::Meter;
use crate::sandbox::stdio::LogStream;
use crate::sandbox::watchdog;
use std::sync::Arc;
use std::time::Instant;
use wasm_cpi_checks::Check;
use wasmtime::component::ResourceTable;
use wasmtime::{Engine, Store, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

/// The data of a guest's store.
pub struct GuestState {
    /// Created when the guest first uses it, because most guests never do.
    wasi: Option<WasiCtx>,
    table: ResourceTable,
    pub meter: Meter,
    pub clock: Arc<CallClock>,
    /// The guest's capabilities; `describe` runs without any.
    pub capabilities: Option<Capabilities>,
    pub counts: HostCallCounts,
    /// Standard output and error, which `describe` does not have.
    streams: Option<[LogStream; 2]>,
}

impl GuestState {
    /// Returns a state without capabilities, for `describe`.
    pub fn bare(limits: &Limits, clock: Arc<CallClock>) -> GuestState {
        GuestState::build(limits, clock, None)
    }

    pub fn new(limits: &Limits, clock: Arc<CallClock>, capabilities: Capabilities) -> GuestState {
        let streams = [Level::Info, Level::Warn].map(|level| LogStream::new(Arc::clone(&capabilities.log), level));
        let mut state = GuestState::build(limits, clock, Some(capabilities));
        state.streams = Some(streams);
        state
    }

    fn build(limits: &Limits, clock: Arc<CallClock>, capabilities: Option<Capabilities>) -> GuestState {
        let mut table = ResourceTable::new();
        table.set_max_capacity(usize::try_from(limits.handles).unwrap_or(usize::MAX));
        GuestState {
            wasi: None,
            table,
            meter: Meter::new(limits),
            clock,
            capabilities,
            counts: HostCallCounts::default(),
            streams: None,
        }
    }

    pub fn into_store(self, engine: &Engine, limits: &Limits) -> Store<GuestState> {
        let mut store = Store::new(engine, self);
        store.limiter(|state| &mut state.meter);
        store.call_hook(|mut store, hook| Ok(store.data_mut().meter.cross(hook)?));
        store.set_hostcall_fuel(usize::try_from(limits.hostcall_mib << 20).unwrap_or(usize::MAX));
        store.set_max_component_handles(usize::try_from(limits.handles).unwrap_or(usize::MAX));
        store.set_epoch_deadline(1);
        let cpu_limit = NamedLimit { name: "cpu_seconds", value: limits.cpu_seconds };
        store.epoch_deadline_callback(move |store| {
            let state = store.data();
            watchdog::request_end_if_due(&state.clock);
            if state.meter.cpu_is_spent() {
                state.clock.request_end(EndReason::Limit(cpu_limit));
            }
            if Instant::now() >= state.clock.hard_deadline() {
                return Err(CleanupOver.into());
            }
            Ok(UpdateDeadline::Continue(1))
        });
        store
    }

    /// Writes the last lines of the guest, and reports how many were dropped.
    pub fn finish_log(&self) {
        self.streams.iter().flatten().for_each(LogStream::finish);
        if let Some(capabilities) = &self.capabilities {
            capabilities.log.finish();
        }
    }
}

impl WasiView for GuestState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let ctx = self.wasi.get_or_insert_with(|| context(self.streams.as_ref()));
        WasiCtxView { ctx, table: &mut self.table }
    }
}

/// Returns a WASI context without environment, arguments and files, where stdin is closed.
fn context(streams: Option<&[LogStream; 2]>) -> WasiCtx {
    let mut wasi = WasiCtxBuilder::new();
    if let Some([stdout, stderr]) = streams {
        wasi.stdout(stdout.clone()).stderr(stderr.clone());
    }
    wasi.max_random_size(Check::RandomSize.choose(64 * 1024, u64::MAX));
    #[cfg(feature = "mutation-testing")]
    crate::host::mutants::context(&mut wasi);
    wasi.build()
}
