//! Characters that hide text or change its direction. Text of a guest or a server may hold them
//! to deceive the person who reads a log, a message or a policy.

/// Returns true if a terminal shows nothing for this character, or shows its neighbours in
/// another order: soft hyphens, zero-width characters, bidirectional controls and tags.
pub fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
