//! The URLs of the services: those of the region, unless the operator names others.

use wasm_cpi_sdk::Error;

use super::invalid;

/// The URLs of the services, without a slash at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoints {
    ec2: String,
    elb: String,
    ebs: String,
}

impl Endpoints {
    /// Returns the URLs in a region. `own` are the endpoints of EC2, ELB and EBS direct that the operator chose.
    pub(super) fn of(region: &str, dualstack: bool, own: [(&str, Option<&str>); 3]) -> Result<Self, Error> {
        let suffix = domain(region, dualstack);
        let [ec2, elb, ebs] = own.map(|(name, url)| match url {
            Some(url) => own_endpoint(name, url),
            None => {
                let host = if name == "elb" { "elasticloadbalancing" } else { name };
                Ok(format!("https://{host}.{region}.{suffix}"))
            }
        });
        Ok(Self { ec2: ec2?, elb: elb?, ebs: ebs? })
    }

    /// Returns the URL of EC2's query API.
    pub(crate) fn ec2(&self) -> String {
        format!("{}/", self.ec2)
    }

    /// Returns the URL of both APIs of load balancers.
    pub(crate) fn elb(&self) -> String {
        format!("{}/", self.elb)
    }

    /// Returns the URL of EBS direct without a slash at the end, to which a path is added.
    pub(crate) fn ebs(&self) -> &str {
        &self.ebs
    }
}

/// Returns the domain of the services of a region's partition.
fn domain(region: &str, dualstack: bool) -> &'static str {
    match (region.split('-').next().unwrap_or_default(), dualstack) {
        ("cn", false) => "amazonaws.com.cn",
        ("cn", true) => "api.amazonwebservices.com.cn",
        ("eusc", false) => "amazonaws.eu",
        ("eusc", true) => "api.amazonwebservices.eu",
        (_, false) => "amazonaws.com",
        (_, true) => "api.aws",
    }
}

/// Returns the URL of an endpoint that is a host, as bosh-aws-cpi takes it, or a URL.
fn own_endpoint(name: &str, endpoint: &str) -> Result<String, Error> {
    let url = if endpoint.contains("://") { endpoint.to_owned() } else { format!("https://{endpoint}") };
    let url = url.trim_end_matches('/');
    let (scheme, host) = url.split_once("://").unwrap_or_default();
    let is_host = !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ']);
    if matches!(scheme, "https" | "http") && is_host {
        return Ok(url.to_owned());
    }
    Err(invalid(
        &format!("{name}_endpoint"),
        &format!("`{endpoint}` is neither a host nor a URL of one"),
        "set it to a host such as ec2.eu-central-1.amazonaws.com, without a path",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(region: &str, dualstack: bool, ec2: Option<&str>) -> Result<Endpoints, Error> {
        Endpoints::of(region, dualstack, [("ec2", ec2), ("elb", None), ("ebs", None)])
    }

    #[test]
    fn each_partition_has_its_domain() {
        for (region, dualstack, ec2, elb) in [
            ("us-east-1", false, "ec2.us-east-1.amazonaws.com", "elasticloadbalancing.us-east-1.amazonaws.com"),
            ("us-east-1", true, "ec2.us-east-1.api.aws", "elasticloadbalancing.us-east-1.api.aws"),
            (
                "us-gov-west-1",
                false,
                "ec2.us-gov-west-1.amazonaws.com",
                "elasticloadbalancing.us-gov-west-1.amazonaws.com",
            ),
            (
                "cn-north-1",
                false,
                "ec2.cn-north-1.amazonaws.com.cn",
                "elasticloadbalancing.cn-north-1.amazonaws.com.cn",
            ),
            (
                "cn-north-1",
                true,
                "ec2.cn-north-1.api.amazonwebservices.com.cn",
                "elasticloadbalancing.cn-north-1.api.amazonwebservices.com.cn",
            ),
            (
                "eusc-de-east-1",
                false,
                "ec2.eusc-de-east-1.amazonaws.eu",
                "elasticloadbalancing.eusc-de-east-1.amazonaws.eu",
            ),
        ] {
            let found = of(region, dualstack, None).unwrap();
            assert_eq!(found.ec2(), format!("https://{ec2}/"), "{region} {dualstack}");
            assert_eq!(found.elb(), format!("https://{elb}/"), "{region} {dualstack}");
            assert_eq!(found.ebs(), format!("https://{}", ec2.replacen("ec2", "ebs", 1)), "{region} {dualstack}");
        }
    }

    #[test]
    fn an_endpoint_is_a_host_or_a_url() {
        for (endpoint, url) in [
            ("ec2-fips.us-east-1.amazonaws.com", "https://ec2-fips.us-east-1.amazonaws.com/"),
            ("https://ec2.example:8443/", "https://ec2.example:8443/"),
            ("http://127.0.0.1:4566", "http://127.0.0.1:4566/"),
        ] {
            assert_eq!(of("us-east-1", false, Some(endpoint)).unwrap().ec2(), url);
        }
        for endpoint in ["https://ec2.example/path", "ftp://ec2.example", "https://", "user@ec2.example"] {
            let error = of("us-east-1", false, Some(endpoint)).unwrap_err();
            assert!(error.message.starts_with("properties.ec2_endpoint: "), "{error}");
        }
    }
}
