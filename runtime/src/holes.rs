//! Every check that keeps a hostile guest in, by name, so that the tests of the
//! tests can turn one off and see that a case catches it.
//!
//! A build that ships has no switch: there `on` is a constant. With the feature
//! `holes` one check is off, the one that `WASM_CPI_HOLE` names. Each variant
//! stands at one mechanism; checks that back each other up share one, and what
//! types or libraries make impossible has none. Limits have holes too, by their
//! names in the config.

#[cfg(not(feature = "holes"))]
use crate::limits::Limits;

#[cfg(feature = "holes")]
pub mod instead;
#[cfg(feature = "holes")]
mod opened;

#[cfg(feature = "holes")]
pub use opened::{for_child, lifted, list};

macro_rules! checks {
    ($($area:literal { $($variant:ident $what:literal;)* })*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Check { $($(#[doc = $what] $variant,)*)* }

        #[cfg(feature = "holes")]
        impl Check {
            /// Each with its name as it is written here, its area and what it refuses.
            const ALL: &[(Check, &str, &str, &str)] =
                &[$($((Check::$variant, stringify!($variant), $area, $what),)*)*];
        }
    };
}

checks! {
    "url" {
        UrlCharacters "a URL with spaces, control characters or backslashes, which parsers repair";
        UrlScheme "a URL of another scheme than http and https";
        UrlSlashes "a URL without `//` and a host behind its scheme";
        UrlUserinfo "a user name or password in a URL";
        UrlPercentHost "a percent-encoded host";
        UrlPort "a port that is not written as a plain number";
        UrlNameLength "a host name or label longer than DNS allows";
        UrlNameCharacters "a host name with characters that DNS names do not have";
        PathBrokenEscape "a broken percent-escape in a path";
        PathEncodedSlash "an encoded slash or backslash in a path";
        PathEncodedControl "an encoded control character in a path";
        PathDoubleEncoding "a doubly encoded separator in a path";
        PathUnreserved "a path that is judged and sent with needless escapes";
        PathDotParameters "a dot segment with parameters in a path";
    }
    "policy" {
        EndpointInPolicy "a grant for the registry, the message bus or the blobstore";
        EndpointByName "a request to the name of such an endpoint";
        EndpointByAddress "a request to the address of such an endpoint under another name";
        NeedsAbsent "requests of a module that declares no needs, without `trust_undeclared`";
        NeedsHttp "a granted request that the module's needs do not declare";
        NeedsSlots "a granted slot that the module's needs do not declare";
        NeedsRegistry "use of the registry that the module's needs do not declare";
        GrantScheme "a scheme that no grant names";
        GrantHost "a host that no grant names";
        GrantPort "a port that no grant names";
        GrantMethod "a method that no grant lists";
        GrantPath "a path that no grant lists";
        GrantOperation "an operation that no grant lists";
        OperationInQuery "an operation that the query names as well";
        WildcardLabel "more than one label in place of a `*`";
        HintNarrow "a grant to paste that is wider than the request, where the module declares everything";
        PlainHttp "secrets over http without `plain_http`";
        SecretWildcard "secrets for a host with a `*`";
        LayerProperty "the job's properties for an origin that the context chose";
        LayerToken "a token got with the job's credentials for such an origin";
        LayerCertificate "the job's client certificate for such an origin";
        LiteralCredential "a credential written into the policy itself";
        ConnectionHeader "an auth header that belongs to the connection";
        TemplatedCa "a CA taken from a property";
        PropertyPem "a file name in a property that must hold PEM";
        ShownToken "a login that shows its token";
        SpotInGrant "a slot or capture outside of its grant's methods and paths";
        SlotBesideAuth "a slot in the header that the grant's auth sets";
        OriginForm "an origin that goes on after its port or is not canonical";
        OriginWildcard "a `*` with fewer than two labels behind it";
        OriginTemplate "a property in an origin that is not one whole label, or its value";
        PatternForm "a pattern of paths that is not canonical or has `**` within";
        EmptyList "an empty list where nothing could match";
        UnknownKey "an unknown key in config, policy or needs";
        UnknownVersion "an unknown version of config, policy or needs";
        DuplicateName "two grants or captures of one name";
        UnusedLogin "a login that no grant uses, or a grant's login that is not there";
        TrustedFile "a config or policy that others can write";
    }
    "address" {
        AddressNever "link-local, metadata and other addresses that no policy can grant";
        AddressOwn "this machine's own addresses without `allow_local`";
        AddressPublic "addresses that are not globally routable";
        AddressCidr "addresses outside of the grant's CIDRs";
        AddressMapped "IPv4 addresses written as IPv6";
        AddressEmbedded "IPv6 addresses that lead to an IPv4 address which is refused";
        ResolveOnce "a second lookup, whose answer nobody judged";
        LocalhostName "an answer of DNS for localhost";
        DnsOwner "records of other names in an answer of DNS";
    }
}

impl Check {
    /// Whether the check is made: always, but for tests of the tests.
    #[cfg(not(feature = "holes"))]
    #[inline(always)]
    pub const fn on(self) -> bool {
        true
    }
}

/// The limits as they are: only tests of the tests lift one.
#[cfg(not(feature = "holes"))]
pub const fn lifted(limits: Limits) -> Limits {
    limits
}

/// What the compiling child needs of the environment: nothing, but for tests of
/// the tests.
#[cfg(not(feature = "holes"))]
pub const fn for_child() -> Option<(&'static str, &'static str)> {
    None
}
