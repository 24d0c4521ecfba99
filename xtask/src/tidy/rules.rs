//! The rules of `tidy` for one file. Does no IO.

/// The most lines of a Rust file.
const MAX_LINES: usize = 500;

/// The directories in which no cloud may be named: only guests know clouds.
const CLOUD_FREE: [&str; 2] = ["runtime/", "wit/"];

/// Names of clouds and their services that do not occur inside other words.
const CLOUDS: [&str; 9] =
    ["openstack", "keystone", "neutron", "amazon", "azure", "google", "vsphere", "vmware", "alicloud"];

/// Names that occur inside other words (laws, innovation): only whole words count, also inside identifiers.
const SHORT_CLOUDS: [&str; 8] = ["nova", "cinder", "glance", "aws", "ec2", "gcp", "warden", "lxd"];

/// Names of headers, and how they begin. Those with credentials are allowed, because the runtime rejects them by name or
/// signs with them; that of the metadata service is a part of its protocol, which has no other name.
const ALLOWED: [&str; 3] = ["x-goog", "x-amz", "x-aws-ec2-metadata-token"];

/// Top directories whose paths exist only on the machine on which a file was written.
const MACHINE_DIRECTORIES: [&str; 3] = ["home", "root", "work"];

/// Returns the violations in one file.
pub(super) fn problems(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let lines = text.lines().count();
    if path.ends_with(".rs") && lines > MAX_LINES {
        found.push(format!("{path}: has {lines} lines, and the limit is {MAX_LINES}; split the file"));
    }
    let cloud_free = CLOUD_FREE.iter().any(|directory| path.starts_with(directory));
    for (index, line) in text.lines().enumerate() {
        let place = format!("{path}:{}", index + 1);
        if cloud_free && let Some(word) = cloud(line) {
            found.push(format!("{place}: names a cloud (`{word}`); only guests may do that"));
        }
        if let Some(top) = machine_path(line) {
            found.push(format!("{place}: contains a path of one machine (`/{top}/…`); remove it"));
        }
    }
    found
}

/// Returns the first name of a cloud in the line.
fn cloud(line: &str) -> Option<&'static str> {
    let mut line = line.to_owned();
    for literal in ALLOWED {
        line = line.replace(literal, "");
    }
    let (small, words) = (line.to_lowercase(), words(&line));
    let long = CLOUDS.into_iter().find(|cloud| small.contains(cloud));
    long.or_else(|| SHORT_CLOUDS.into_iter().find(|cloud| words.iter().any(|word| word == cloud)))
}

/// Splits at every character that is not a letter or digit, and at the capitals of camel case.
fn words(line: &str) -> Vec<String> {
    let letters: Vec<char> = line.chars().collect();
    let mut words = vec![String::new()];
    for (index, &letter) in letters.iter().enumerate() {
        let before = index.checked_sub(1).map(|index| letters[index]);
        let after = letters.get(index + 1);
        let hump = letter.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase() || before.is_numeric() || after.is_some_and(|after| after.is_lowercase())
            });
        if hump || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
    }
    words
}

/// Returns the top directory of an absolute path in this line, if it is one of `MACHINE_DIRECTORIES`.
fn machine_path(line: &str) -> Option<&'static str> {
    MACHINE_DIRECTORIES.into_iter().find(|top| {
        let path = format!("/{top}/");
        line.match_indices(&path).any(|(at, _)| {
            // In the middle of a longer path or URL it is not a top directory.
            let before = line[..at].chars().next_back();
            let after = line[at + path.len()..].chars().next();
            before.is_none_or(|c| !c.is_alphanumeric() && !"._-~*/}>)]".contains(c))
                && after.is_some_and(|c| c.is_alphanumeric() || c == '.' || c == '_')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_files_have_at_most_500_lines_and_other_files_have_no_limit() {
        let long = "\n".repeat(501);
        assert_eq!(problems("a.rs", &"\n".repeat(500)).len(), 0);
        assert_eq!(problems("a.rs", &long).len(), 1);
        assert_eq!(problems("a.md", &long).len(), 0);
    }

    #[test]
    fn clouds_are_found_in_words_and_identifiers() {
        for line in [
            "for AWS only",
            "aws_sigv4",
            "struct AwsSigner",
            "AWSSigner",
            "Ec2Client",
            "EC2Client",
            "// like OpenStack's",
            "openstackish",
            "keystone-token",
            "novaClient",
            "GOOGLE",
        ] {
            assert_eq!(problems("runtime/src/a.rs", line).len(), 1, "{line}");
            assert_eq!(problems("wit/a.wit", line).len(), 1, "{line}");
            assert_eq!(problems("guests/a.rs", line).len(), 0, "{line}");
        }
    }

    #[test]
    fn other_words_and_credential_headers_are_not_clouds() {
        for line in [
            "it draws on laws and flaws",
            "innovation",
            "x-amz-date",
            "\"x-goog-\"",
            "x-aws-ec2-metadata-token-ttl-seconds",
            "record2",
            "forwarden",
        ] {
            assert_eq!(problems("runtime/src/a.rs", line), Vec::<String>::new());
        }
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for top in MACHINE_DIRECTORIES {
            for line in
                [format!("/{top}/a"), format!("see \"/{top}/.b\""), format!("x=/{top}/c d"), format!("`/{top}/x`")]
            {
                assert_eq!(problems("README.md", &line).len(), 1, "{line}");
            }
        }
    }

    #[test]
    fn parts_of_longer_paths_and_urls_are_not_paths_of_one_machine() {
        for top in MACHINE_DIRECTORIES {
            for line in [
                format!("https://example.org/{top}/a"),
                format!("a/{top}/b"),
                format!("${{dir}}/{top}/b"),
                format!("/{top}"),
                format!("/{top}fs/a"),
                format!("/v1/*/{top}/a"),
            ] {
                assert_eq!(problems("README.md", &line), Vec::<String>::new());
            }
        }
    }
}
