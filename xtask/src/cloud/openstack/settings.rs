//! The settings of the services: ports, secrets and directories, and the config files that
//! are made from them.
//!
//! A template names a value in braces. Each start creates new secrets; only the owner can
//! read the directory of the files that contain them.

use crate::files;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::{self, File};
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

/// The default ports, by the name of the interface.
const PORTS: [(&str, u16); 11] = [
    ("identity", 5000),
    ("image", 9292),
    ("placement", 8778),
    ("compute", 8774),
    ("metadata", 8775),
    ("network", 9696),
    ("volume", 8776),
    ("database", 13306),
    ("bus", 15672),
    ("names", 14369),
    ("distribution", 25672),
];

/// The offsets of a first, second and third cloud on one machine.
const OFFSETS: [u16; 3] = [0, 100, 200];

/// The ports of one cloud: the default ports plus an offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ports(u16);

impl Ports {
    /// Returns the first set of ports that are all free.
    pub(super) fn free() -> Result<Ports> {
        let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        let free = OFFSETS.into_iter().map(Ports).find(|ports| ports.all().all(|(_, port)| is_free(port)));
        free.with_context(|| {
            let ports: Vec<String> = PORTS.iter().map(|(_, port)| port.to_string()).collect();
            format!(
                "the cloud needs the ports {} (or all of them plus 100, or plus 200), and some of each set are in use; \
                 stop the programs that use them",
                ports.join(", ")
            )
        })
    }

    pub(super) fn read(file: &Path) -> Option<Ports> {
        fs::read_to_string(file).ok()?.trim().parse().ok().map(Ports)
    }

    pub(super) fn write(self, file: &Path) -> Result<()> {
        files::write(file, &self.0.to_string(), 0o600)
    }

    pub(super) fn of(self, name: &str) -> u16 {
        self.all().find(|(known, _)| *known == name).map_or(0, |(_, port)| port)
    }

    fn all(self) -> impl Iterator<Item = (&'static str, u16)> {
        PORTS.into_iter().map(move |(name, port)| (name, port + self.0))
    }
}

/// The values that templates and scripts use.
pub(super) struct Settings {
    pub(super) ports: Ports,
    pub(super) identity: String,
    pub(super) database: String,
    pub(super) bus: String,
    /// The password of the administrator, the services and the database.
    pub(super) secret: String,
    /// The password of the users that tests log in as.
    pub(super) api_key: String,
    pub(super) metadata_secret: String,
}

impl Settings {
    pub(super) fn new(ports: Ports) -> Result<Settings> {
        let secret = random_secret()?;
        Ok(Settings {
            ports,
            identity: format!("http://127.0.0.1:{}/v3", ports.of("identity")),
            database: format!("mysql+pymysql://cloud:{secret}@127.0.0.1:{}", ports.of("database")),
            bus: format!("rabbit://guest:guest@127.0.0.1:{}/", ports.of("bus")),
            secret,
            api_key: random_secret()?,
            metadata_secret: random_secret()?,
        })
    }

    /// Fills in every template of a directory, and writes the results to another directory.
    pub(super) fn fill(&self, templates: &Path, to: &Path, state: &Path, venv: &Path) -> Result<()> {
        let mut values: BTreeMap<String, String> =
            self.ports.all().map(|(name, port)| (format!("port.{name}"), port.to_string())).collect();
        values.extend([
            ("identity".to_owned(), self.identity.clone()),
            ("database".to_owned(), self.database.clone()),
            ("bus".to_owned(), self.bus.clone()),
            ("secret".to_owned(), self.secret.clone()),
            ("metadata_secret".to_owned(), self.metadata_secret.clone()),
            ("state".to_owned(), state.display().to_string()),
            ("venv".to_owned(), venv.display().to_string()),
        ]);
        for user in ["cinder", "glance", "neutron", "nova", "placement"] {
            values.insert(format!("auth.{user}"), self.auth(user));
        }
        for entry in fs::read_dir(templates).with_context(|| format!("{} cannot be read", templates.display()))? {
            let entry = entry?;
            let text = fill_template(&fs::read_to_string(entry.path())?, &values);
            let text = text.with_context(|| format!("the template {} is wrong", entry.path().display()))?;
            files::write(&to.join(entry.file_name()), &text, 0o600)?;
        }
        Ok(())
    }

    /// Returns the config lines with which a service logs in to Keystone.
    fn auth(&self, user: &str) -> String {
        format!(
            "auth_type = password\nauth_url = {}\nusername = {user}\npassword = {}\nproject_name = service\n\
             user_domain_name = Default\nproject_domain_name = Default\nregion_name = RegionOne",
            self.identity, self.secret
        )
    }
}

/// Replaces every name in braces by its value.
fn fill_template(template: &str, values: &BTreeMap<String, String>) -> Result<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { bail!("a brace is not closed") };
        let Some(value) = values.get(name) else { bail!("there is no value named `{{{name}}}`") };
        text.push_str(before);
        text.push_str(value);
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

/// Returns 128 random bits in hex.
fn random_secret() -> Result<String> {
    let mut bytes = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.context("/dev/urandom cannot be read")?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_in_and_unknown_names_are_rejected() {
        let values = BTreeMap::from([("port.image".to_owned(), "9292".to_owned())]);
        assert_eq!(fill_template("a = :{port.image}/%(x)s\n", &values).unwrap(), "a = :9292/%(x)s\n");
        for (template, named) in [("{secret}", "{secret}"), ("a {", "not closed")] {
            let error = fill_template(template, &values).unwrap_err().to_string();
            assert!(error.contains(named), "{template}: {error}");
        }
    }

    #[test]
    fn every_template_of_the_repository_can_be_filled_in() {
        let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/openstack/etc");
        let to = tempfile::tempdir().unwrap();
        let settings = Settings::new(Ports(100)).unwrap();
        settings.fill(&templates, to.path(), Path::new("/s"), Path::new("/v")).unwrap();
        let glance = fs::read_to_string(to.path().join("glance.conf")).unwrap();
        assert!(glance.contains("bind_port = 9392\n") && glance.contains("/s/images"), "{glance}");
    }

    #[test]
    fn clouds_with_different_offsets_have_different_ports() {
        let mut ports: Vec<u16> = OFFSETS.into_iter().flat_map(|offset| Ports(offset).all()).map(|(_, p)| p).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), OFFSETS.len() * PORTS.len());
    }

    #[test]
    fn ports_are_read_back_from_their_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ports");
        assert_eq!(Ports::read(&file), None);
        Ports(200).write(&file).unwrap();
        assert_eq!(Ports::read(&file), Some(Ports(200)));
        assert_eq!(Ports(200).of("identity"), 5200);
    }
}
