//! The interface `random`: bytes of the kernel's generator.

use crate::bindings::bosh::cpi::random::Host;
use crate::host::GuestState;
use wasm_cpi_checks::Check;

const MAX: u32 = 64 * 1024;

impl Host for GuestState {
    fn bytes(&mut self, count: u32) -> Vec<u8> {
        self.counts.random += 1;
        let host_call = self.start_host_call("random.bytes", "");
        let max = Check::RandomSize.choose(MAX, u32::MAX);
        let mut bytes = vec![0; count.min(max) as usize];
        // The generator does not fail on a supported kernel. No bytes are better than zeroes.
        if getrandom::fill(&mut bytes).is_err() {
            bytes.clear();
        }
        host_call.succeed(bytes.len());
        bytes
    }
}
