//! Answers of name servers, and the files that configure the resolver.

use std::collections::HashSet;
use std::net::IpAddr;
use wasm_cpi::fuzzing::{addresses_in, in_hosts, name_servers};

/// Takes an answer as bytes. Every accepted address must be a record of the name that
/// was asked for, or of the target of its alias.
pub(crate) fn fuzz_answer(data: &[u8]) {
    let Some(found) = addresses_in(data) else { return };
    assert!(found.len() <= 32);
    if found.is_empty() {
        return;
    }
    let records = records(data).expect("an accepted answer is well-formed");
    let mut names: HashSet<&Vec<u8>> = HashSet::from([&records.question]);
    loop {
        let aliases = records.aliases.iter().filter(|(owner, _)| names.contains(owner)).map(|(_, target)| target);
        let more: Vec<&Vec<u8>> = aliases.filter(|target| !names.contains(target)).collect();
        if more.is_empty() {
            break;
        }
        names.extend(more);
    }
    for address in found {
        let named = records.addresses.iter().any(|(owner, own)| *own == address && names.contains(owner));
        assert!(named, "{address} is not an address of the name that was asked for");
    }
}

struct Records {
    question: Vec<u8>,
    aliases: Vec<(Vec<u8>, Vec<u8>)>,
    addresses: Vec<(Vec<u8>, IpAddr)>,
}

/// Parses the parts of RFC 1035 that are needed here. Names are in lower case.
fn records(message: &[u8]) -> Option<Records> {
    let number = |at: usize| Some(usize::from(u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?)));
    let (questions, answers) = (number(4)?, number(6)?);
    let question = name(message, 12)?;
    let mut at = 12;
    for _ in 0..questions {
        at = end_of_name(message, at)? + 4;
    }
    let mut records = Records { question, aliases: Vec::new(), addresses: Vec::new() };
    for _ in 0..answers {
        let end = end_of_name(message, at)?;
        let (kind, length) = (number(end)?, number(end + 8)?);
        let data = message.get(end + 10..end + 10 + length)?;
        if let Some(owner) = name(message, at) {
            match kind {
                1 => records.addresses.extend(<[u8; 4]>::try_from(data).ok().map(|data| (owner, data.into()))),
                28 => records.addresses.extend(<[u8; 16]>::try_from(data).ok().map(|data| (owner, data.into()))),
                5 => records.aliases.extend(name(message, end + 10).map(|target| (owner, target))),
                _ => {}
            }
        }
        at = end + 10 + length;
    }
    Some(records)
}

/// Returns the position after a name, without following its pointer.
fn end_of_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match usize::from(*message.get(at)?) {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + length,
            192.. => return Some(at + 2),
            _ => return None,
        }
    }
}

/// Returns a name, and follows its pointers.
fn name(message: &[u8], mut at: usize) -> Option<Vec<u8>> {
    let mut name = Vec::new();
    loop {
        match usize::from(*message.get(at)?) {
            0 => return Some(name.to_ascii_lowercase()),
            length @ 1..=63 => {
                name.extend_from_slice(message.get(at..at + 1 + length)?);
                at += 1 + length;
            }
            high @ 192.. => {
                let target = (high & 63) << 8 | usize::from(*message.get(at + 1)?);
                // A pointer can only point backwards.
                at = Some(target).filter(|target| *target < at)?;
            }
            _ => return None,
        }
    }
}

/// Takes the text of `resolv.conf` or `hosts`.
pub(crate) fn fuzz_resolver_files(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (servers, search, _) = name_servers(&text);
    assert!((1..=3).contains(&servers.len()) && search.len() <= 6);
    for server in &servers {
        let listed =
            lines(&text).any(|line| line.first() == Some(&"nameserver") && parsed(line.get(1)) == Some(*server));
        assert!(listed || *server == IpAddr::from([127, 0, 0, 1]), "{server} is not in the file");
    }
    assert!(search.iter().all(|suffix| !suffix.is_empty() && !suffix.ends_with('.')));
    for name in ["api.test", "db"] {
        let found = in_hosts(&text, name);
        for address in &found {
            let matching = lines(&text).filter(|line| parsed(line.first()) == Some(*address));
            let named = matching.flatten().any(|word| word.eq_ignore_ascii_case(name));
            assert!(named, "{address} is not an address of {name}");
        }
        assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len());
    }
}

/// Returns the words of each line, without comments.
fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().map(|line| line.split('#').next().unwrap_or_default().split_whitespace().collect())
}

fn parsed(word: Option<&&str>) -> Option<IpAddr> {
    word?.parse().ok()
}
