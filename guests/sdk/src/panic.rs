//! A panic becomes a trap, which carries no message. The panic hook logs message
//! and location before that, so that the operator sees them.

use std::panic::PanicHookInfo;

/// Installs the panic hook. A native build keeps the hook of the test harness.
pub(crate) fn install() {
    #[cfg(target_family = "wasm")]
    std::panic::set_hook(Box::new(|info| crate::log::error(describe(info))));
}

#[cfg_attr(not(any(test, target_family = "wasm")), expect(dead_code, reason = "the hook is for wasm"))]
fn describe(info: &PanicHookInfo<'_>) -> String {
    let message = info.payload_as_str().unwrap_or("no message");
    match info.location() {
        Some(at) => format!("guest panicked at {}:{}:{}: {message}", at.file(), at.line(), at.column()),
        None => format!("guest panicked: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    #[test]
    fn a_panic_is_described_with_message_and_location() {
        let (sender, receiver) = mpsc::channel();
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            // Other tests may panic at the same time.
            if info.payload_as_str() == Some("the cloud is 7 m too high") {
                let _ = sender.send(super::describe(info));
            }
        }));
        let _ = std::panic::catch_unwind(|| panic!("the cloud is {} m too high", 7));
        std::panic::set_hook(before);
        let text = receiver.recv().unwrap();
        assert!(text.starts_with("guest panicked at "), "{text}");
        assert!(text.contains("panic.rs:") && text.ends_with(": the cloud is 7 m too high"), "{text}");
    }
}
