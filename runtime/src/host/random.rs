use crate::bindings::bosh::cpi::random::Host;
use crate::host::State;
use wasm_cpi_checks::Check;

const MAX: u32 = 64 * 1024;

impl Host for State {
    fn bytes(&mut self, count: u32) -> Vec<u8> {
        self.counts.random += 1;
        let note = self.note("random.bytes", "");
        let max = if Check::RandomSize.on() { MAX } else { count };
        let mut bytes = vec![0; count.min(max) as usize];
        // The kernel's generator fails on no kernel that runs us; zeroes would
        // be worse than none.
        if getrandom::fill(&mut bytes).is_err() {
            bytes.clear();
        }
        note.done(bytes.len());
        bytes
    }
}
