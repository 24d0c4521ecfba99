//! Reports a panic of the compiling child to its parent.
//!
//! The child's stderr is closed, and a child that dies without an answer could have died of
//! anything. The child holds no secrets, so the text of the panic may be shown.

use crate::component::child::ChildFailure;
use crate::failure::Failure;
use crate::log::escape;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// The text and place of the first panic.
static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// The longest text that is sent.
const MAX_SHOWN: usize = 1000;

/// Keeps the text of the first panic, which may happen in any thread, instead of printing it.
pub fn install() {
    std::panic::set_hook(Box::new(|panic| {
        FIRST.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| panic.to_string());
    }));
}

/// Does the work. Returns the refusal that reports a panic, if the work panics.
pub fn catch<T>(work: impl FnOnce() -> Result<T, ChildFailure>) -> Result<T, ChildFailure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let text = FIRST.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
        let what = "the compiler panicked; this is a bug in wasm-cpi or in its engine, please report it with the guest";
        let words: Vec<&str> = text.split_whitespace().collect();
        Err(Failure::runtime(what).with_detail(escape(&words.join(" "), MAX_SHOWN)).into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Who;

    #[test]
    fn a_panic_in_another_thread_is_reported_with_its_text() {
        install();
        let refusal = catch::<()>(|| {
            std::thread::spawn(|| panic!("called `unwrap`\non {}", "an Err")).join().unwrap_or_else(|panic| {
                std::panic::resume_unwind(panic);
            });
            Ok(())
        })
        .unwrap_err();
        let _ = std::panic::take_hook();
        assert_eq!(refusal.who, Who::Runtime);
        assert!(refusal.message.contains("the compiler panicked"), "{refusal:?}");
        assert!(refusal.detail.contains("called `unwrap` on an Err"), "{refusal:?}");
        assert!(refusal.detail.contains("panic_report.rs"), "{refusal:?}");
        assert_eq!(catch(|| Ok(1)).unwrap(), 1);
    }
}
