//! What the services are told: ports, secrets, directories, and their files made of these.
//!
//! A template names a value in braces. Secrets are new each time; the files that
//! hold them lie in a directory that is open to its owner alone.

use crate::files;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::{self, File};
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

/// The usual ports, by what listens there.
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

/// Where a second and third cloud go, if the usual ports are taken.
const OFFSETS: [u16; 3] = [0, 100, 200];

/// One running cloud's ports: the usual ones, moved by a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ports(u16);

impl Ports {
    /// The first set of which nobody uses any.
    pub(super) fn free() -> Result<Ports> {
        let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        let free = OFFSETS.into_iter().map(Ports).find(|ports| ports.all().all(|(_, port)| is_free(port)));
        free.with_context(|| {
            let usual: Vec<String> = PORTS.iter().map(|(_, port)| port.to_string()).collect();
            format!("some of the ports {} are taken, and so are those 100 and 200 above", usual.join(", "))
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
    /// Of the administrator, the services and the database.
    pub(super) secret: String,
    /// Of the user that tests are.
    pub(super) api_key: String,
    pub(super) metadata_secret: String,
}

impl Settings {
    pub(super) fn new(ports: Ports) -> Result<Settings> {
        let secret = random()?;
        Ok(Settings {
            ports,
            identity: format!("http://127.0.0.1:{}/v3", ports.of("identity")),
            database: format!("mysql+pymysql://cloud:{secret}@127.0.0.1:{}", ports.of("database")),
            bus: format!("rabbit://guest:guest@127.0.0.1:{}/", ports.of("bus")),
            secret,
            api_key: random()?,
            metadata_secret: random()?,
        })
    }

    /// Fills every template of a directory into another.
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
            let filled = filled(&fs::read_to_string(entry.path())?, &values);
            let filled = filled.with_context(|| format!("{} cannot be filled in", entry.path().display()))?;
            files::write(&to.join(entry.file_name()), &filled, 0o600)?;
        }
        Ok(())
    }

    /// The lines by which a service logs in, wherever it does.
    fn auth(&self, user: &str) -> String {
        format!(
            "auth_type = password\nauth_url = {}\nusername = {user}\npassword = {}\nproject_name = service\n\
             user_domain_name = Default\nproject_domain_name = Default\nregion_name = RegionOne",
            self.identity, self.secret
        )
    }
}

fn filled(template: &str, values: &BTreeMap<String, String>) -> Result<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { bail!("a brace is not closed") };
        let Some(value) = values.get(name) else { bail!("nothing is known as `{{{name}}}`") };
        text.push_str(before);
        text.push_str(value);
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

/// 128 bits, as text.
fn random() -> Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).context("/dev/urandom")?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_takes_values_by_name_and_no_others() {
        let values = BTreeMap::from([("port.image".to_owned(), "9292".to_owned())]);
        assert_eq!(filled("a = :{port.image}/%(x)s\n", &values).unwrap(), "a = :9292/%(x)s\n");
        for (template, named) in [("{secret}", "{secret}"), ("a {", "not closed")] {
            let error = filled(template, &values).unwrap_err().to_string();
            assert!(error.contains(named), "{template}: {error}");
        }
    }

    #[test]
    fn every_template_can_be_filled() {
        let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/openstack/etc");
        let to = tempfile::tempdir().unwrap();
        let settings = Settings::new(Ports(100)).unwrap();
        settings.fill(&templates, to.path(), Path::new("/s"), Path::new("/v")).unwrap();
        let glance = fs::read_to_string(to.path().join("glance.conf")).unwrap();
        assert!(glance.contains("bind_port = 9392\n") && glance.contains("/s/images"), "{glance}");
    }

    #[test]
    fn no_two_ports_of_clouds_side_by_side_are_the_same() {
        let mut ports: Vec<u16> = OFFSETS.into_iter().flat_map(|offset| Ports(offset).all()).map(|(_, p)| p).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), OFFSETS.len() * PORTS.len());
    }

    #[test]
    fn ports_are_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ports");
        assert_eq!(Ports::read(&file), None);
        Ports(200).write(&file).unwrap();
        assert_eq!(Ports::read(&file), Some(Ports(200)));
        assert_eq!(Ports(200).of("identity"), 5200);
    }
}
