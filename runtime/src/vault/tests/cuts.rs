//! The redacted start of a long text.

use super::*;

/// Returns the longest run of the secret that the text holds.
fn longest_run(secret: &str, text: &str) -> usize {
    let run =
        |start: usize| (0..=secret.len() - start).rev().find(|length| text.contains(&secret[start..start + length]));
    (0..secret.len()).filter_map(run).max().unwrap_or_default()
}

proptest! {
    #[test]
    fn no_cut_shows_a_part_of_a_secret(
        secret in prop_oneof!["[a-f]{12,60}", "[a-f]{2000}", "[a-f][a-f\"\\\\\n]{10,58}[a-f]"],
        before in 0..90_usize,
        cut in 0..4200_usize,
        encoder in 0..ENCODERS.len(),
    ) {
        let vault = Vault::new();
        vault.register("password", Secret::new(secret.as_str()));
        let encoded = ENCODERS[encoder].1(&secret);
        let text = format!("{}{encoded}{}", "XY ".repeat(before / 3), "ZZ".repeat(4000));
        let cut = cut % (encoded.len() + before + 20);
        let (start, left_out) = vault.redact_start(&text, cut);
        prop_assert!(start.len() <= cut + "<redacted>".len() && left_out >= text.len() - cut);
        // Some encoders write something before the secret.
        let other = ENCODERS[encoder].1(&secret.replace(|c: char| c.is_ascii_alphabetic(), "z"));
        let frame = encoded.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
        prop_assert!(longest_run(&encoded[frame..], &start) < 8, "{}: {encoded} shows {start}", ENCODERS[encoder].0);
    }
}

#[test]
fn a_text_is_cut_before_a_secret_that_the_cut_divides() {
    let vault = Vault::new();
    let long = "k".repeat(200 * 1024);
    vault.register("password", Secret::new("correct horse battery"));
    vault.register("settings", Secret::new(long.as_str()));
    let start = |text: &str, most| vault.redact_start(text, most);
    assert_eq!(start("it is correct horse battery.", 40), ("it is <redacted>.".to_owned(), 0));
    assert_eq!(start("it is correct horse battery.", 27), ("it is <redacted>".to_owned(), 1));
    assert_eq!(start("it is correct horse battery.", 26), ("it is ".to_owned(), 22));
    assert_eq!(start("it is correct horse battery.", 7), ("it is ".to_owned(), 22));
    assert_eq!(
        start("it is correct horses, and more", 26),
        ("it is correct horses, and m".get(..26).unwrap().to_owned(), 4)
    );
    assert_eq!(start(&format!("it is {long} and more"), 100 * 1024).0, "it is ");
    assert_eq!(start(r"it is correct\u0020horse battery.", 16).0, "it is ");
    assert_eq!(start("äöü", 3), ("ä".to_owned(), 4));
}
