//! Requests that the host signs with version 4 signatures.
//!
//! A signature is valid for one service in one region. Both are the operator's: a literal, or a property of
//! the job. A cpi-config may choose the region from a list, because the name of a server is made of it
//! (`compute.REGION.example.com`), and another label may lead to a server of somebody else.

use super::object_reader::ObjectReader;
use super::one_property::{Form, OneProperty, OnePropertySpec};
use super::problem::{PolicyProblem, Problems};
use super::properties::Properties;
use super::regions::{Regions, UnlistedRegion};
use crate::secret::Layer;
use wasm_cpi_checks::Check;

/// How the requests of a grant are signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigV4 {
    /// The name by which the service signs.
    pub service: String,
    /// The region, such as `us-east-1`.
    pub region: String,
    /// The name of the policy's credentials.
    pub credentials: String,
}

#[derive(Clone, Debug)]
pub(super) struct SigV4Spec {
    service: OnePropertySpec,
    region: RegionSpec,
    pub(super) credentials: String,
}

/// A region as it is written. A cpi-config may choose only one that the policy's `regions` list.
#[derive(Clone, Debug)]
pub(super) struct RegionSpec(OnePropertySpec);

const REGION: Form =
    Form { key: "region", noun: "a region like `eu-central-1`", is_valid: is_region, check: Check::RegionForm };

const SERVICE: Form = Form {
    key: "service",
    noun: "the name of a service in lower case",
    is_valid: is_service,
    check: Check::ServiceForm,
};

/// Services that return credentials or tokens of others. Only the host speaks to one of them.
const ISSUERS: [&str; 21] = [
    "awsssooidc",
    "awsssoportal",
    "codeartifact",
    "cognito-identity",
    "cognito-idp",
    "datazone",
    "ecr",
    "ecr-public",
    "eks-auth",
    "iam",
    "lakeformation",
    "redshift",
    "redshift-serverless",
    "rolesanywhere",
    "s3express",
    "signin",
    "sso",
    "sso-directory",
    "sso-oauth",
    "sts",
    "workload-identity",
];

impl SigV4Spec {
    /// Reads the object at the key `sigv4`.
    pub(super) fn read(reader: &mut ObjectReader<'_>) -> Option<SigV4Spec> {
        let service = OnePropertySpec::read(reader, &SERVICE);
        let region = RegionSpec::read(reader);
        let credentials = reader.required_text("credentials", "main").map(str::to_owned);
        let spec = SigV4Spec { service: service?, region: region?, credentials: credentials? };
        Some(spec)
    }

    /// Fills in the properties.
    pub(super) fn resolve(
        &self,
        properties: &Properties,
        regions: &Regions,
        at: &str,
        problems: &Problems,
    ) -> Option<SigV4> {
        let service = self.resolve_service(properties, at, problems);
        let region = self.region.resolve(properties, regions, at, problems);
        Some(SigV4 { service: service?, region: region?, credentials: self.credentials.clone() })
    }

    /// Returns the service, which must not be one that issues credentials.
    fn resolve_service(&self, properties: &Properties, at: &str, problems: &Problems) -> Option<String> {
        let OneProperty { value, property, layer } = self.service.resolve(&SERVICE, properties, at, problems)?;
        let at = format!("{at}.{}", SERVICE.key);
        let of_job = problems.ensure(Check::ServiceOfContext, layer == Layer::Job, || {
            let what = format!("takes the property `{}` from the context (a cpi-config)", property.unwrap_or_default());
            PolicyProblem::new(&at, what, "set the property in the job's properties alone")
        });
        let harmless = problems.ensure(Check::ServiceIssuer, !ISSUERS.contains(&value.as_str()), || {
            let what = "is a service that issues credentials, which no guest may get";
            let remedy = "remove the grant; the host itself asks for credentials, as `credentials` say";
            PolicyProblem::new(&at, what, remedy)
        });
        (of_job && harmless).then_some(value)
    }
}

impl RegionSpec {
    pub(super) fn read(reader: &mut ObjectReader<'_>) -> Option<RegionSpec> {
        OnePropertySpec::read(reader, &REGION).map(RegionSpec)
    }

    /// Returns the region. `at` is the path of the object that it is in.
    pub(super) fn resolve(
        &self,
        properties: &Properties,
        regions: &Regions,
        at: &str,
        problems: &Problems,
    ) -> Option<String> {
        let OneProperty { value, property, layer } = self.0.resolve(&REGION, properties, at, problems)?;
        if let Err(unlisted) = regions.layer_of(&value, layer) {
            let what = format!("the value of the property `{}`: {unlisted}", property.unwrap_or_default());
            let problem = PolicyProblem::new(format!("{at}.{}", REGION.key), what, UnlistedRegion::REMEDY);
            problems.push(PolicyProblem { check: unlisted.check, ..problem });
            return None;
        }
        Some(value)
    }
}

/// Returns true for a name of words and a number, such as `us-gov-west-1`. The names of object storage and of its
/// buckets, which may stand in the same place of a host name, look different.
fn is_region(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let Some((number, words)) = parts.split_last() else { return false };
    let is_word = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_number = (1..=2).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    words.len() >= 2 && text.len() <= 32 && is_number && words.iter().all(is_word)
}

fn is_service(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=64).contains(&text.len()) && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_words_and_a_number() {
        for text in ["us-east-1", "us-gov-west-1", "eu-central-2", "ap-southeast-12", "eusc-de-east-1"] {
            assert!(is_region(text), "{text}");
        }
        for text in [
            "",
            "s3",
            "s3-us-west-2",
            "us-east",
            "east-1",
            "us--1",
            "US-EAST-1",
            "us-east-1a",
            "us-east-",
            "-us-east-1",
            "us_east_1",
            "us-east-1.s3",
            "us-east-123",
            "x/y-z-1",
            "bucket",
        ] {
            assert!(!is_region(text), "{text}");
        }
    }
}
