//! Every check of wasm-cpi that keeps a hostile guest, a wrong file or a server from doing harm.
//!
//! A check is a value: [`Check::ensure`] and the other methods decide whether it refuses. A
//! refusal has a code, which messages and the audit log show, a meaning and a remedy, which
//! `wasm-cpi explain CODE` prints. A safeguard is a setting, a bound or a step without an error
//! of its own. The modules below `areas` describe each check.
//!
//! In a program that ships every check is made. With the feature `mutation-testing` the
//! environment variable `WASM_CPI_MUTANT` turns one check off, so that tests can show which test
//! notices. Each variant stands for one mechanism; checks that back each other up share one, and
//! what types or libraries make impossible has none, and neither has a fixed bound which only saves
//! work below a limit of the configuration that holds without it. These limits can be turned off the
//! same way; the runtime knows their names.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod areas;
mod decision;
mod explanation;
#[cfg(feature = "mutation-testing")]
mod mutant;
#[cfg(test)]
mod tests;

pub use decision::RefusedBy;
pub use explanation::Explanation;
#[cfg(feature = "mutation-testing")]
pub use mutant::{VARIABLE, list, mutant};

use std::fmt;

macro_rules! checks {
    ($($title:literal $area:ident { $($variant:ident)* })*) => {
        /// One named check.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Check {
            $($(
                #[doc = concat!(
                    "Area `", stringify!($area), "`. [`Check::explanation`] says what it is for; ",
                    "docs/codes.md lists all refusals."
                )]
                $variant,
            )*)*
        }

        impl Check {
            /// All checks, area by area.
            pub const ALL: &[Check] = &[$($(Check::$variant,)*)*];

            /// Returns the name in kebab-case. Of a refusal it is the code that messages show;
            /// mutation tests name every check by it.
            pub const fn code(self) -> &'static str {
                match self { $($(Check::$variant => areas::$area::$variant.code,)*)* }
            }

            /// Returns what the check is for.
            pub const fn explanation(self) -> Explanation {
                match self { $($(Check::$variant => areas::$area::$variant.explanation,)*)* }
            }

            /// Returns the title of the area that the check belongs to.
            pub const fn area(self) -> &'static str {
                match self { $($(Check::$variant)|* => $title,)* }
            }
        }
    };
}

checks! {
    "URLs" url {
        UrlCharacters UrlScheme UrlSlashes UrlUserinfo UrlPercentHost UrlHostAscii UrlPort UrlNameLength UrlNameCharacters
        PathBrokenEscape PathEncodedSlash PathEncodedControl PathDoubleEncoding PathUnreserved PathText
        PathDotParameters
    }
    "Grants and needs" policy {
        EndpointInPolicy EndpointOfEnv EndpointByName EndpointByAddress EndpointUnresolved
        NeedsAbsent NeedsHttp NeedsSlots NeedsRegistry NeedsImage NeedsLogin NeedsOperation
        GrantScheme GrantHost GrantPort GrantMethod GrantPath GrantQuery GrantOperation OperationInQuery
        OperationSingle OperationSoap PathAlike GrantSpecific OriginRules WildcardLabel HintNarrow
    }
    "Fields of requests" body_fields {
        FieldAbsent FieldValue FieldRequired FieldOthers FieldQuery FieldAlike FieldList FieldTwice FieldName FieldNumber
        FieldBody FieldOperation FieldSerialised
    }
    "Config, policy and needs files" policy_file {
        PlainHttp SecretWildcard RegionListed LayerProperty LayerToken LayerSignature LayerCapture LayerCertificate LayerCa
        RegionForm ServiceForm ServiceOfContext ServiceIssuer RoleForm RoleOfContext
        LiteralCredential ConnectionHeader KeyFile PropertyName PropertyPem ShownToken ShownSlot
        EntryOutsideGrant PointerWildcard SlotElement SlotNameTwice SlotBesideAuth
        OriginForm OriginWildcard OriginTemplate PatternForm
        EmptyList UnknownKey UnknownVersion DuplicateName UnusedLogin UnusedCredentials TrustedFile BlocksBesideSlots
    }
    "Addresses and names" address {
        AddressNever AddressOwn AddressPublic AddressCidr AddressMapped AddressEmbedded
        ResolveOnce LocalhostName DnsOwner
    }
    "TLS" tls {
        TlsIssuer TlsName TlsTime TlsPin TlsEnvironment TlsKeyLog
    }
    "HTTP requests" http_request {
        MethodKnown HeaderFraming HeaderValue HeaderOverride MethodParameter HeaderUnderscore
        HeaderAuthorization HeaderOfAuth HeaderCredentials HeaderEncodingRange HeaderCharset HeaderAccept ReadBody QueryHidden HeaderConditional
        SignedHeader SignedParameter SignedFormQuery ClockSkew MetadataDirect
        QueryCredentials IdentityRequested ProxyEnvironment CountedBytes CountedResponses
        GrantBlocks BlockHeader BodyParts
    }
    "Connections" connections {
        KeptIdentity KeptTls KeptAddress KeptFraming KeptBody InterimResponses
    }
    "HTTP responses" http_response {
        Redirects SwitchedProtocol FramingTwice Truncation EncodedResponse CharsetResponse
        CredentialHeaders CredentialFields CredentialsHandedOut CredentialUnreadable
        ResponseRoom ShownPlaces DroppedPlaces DropUnreadable ResponseDigests SettingsMarker SettingsShape SettingsDivided
        SettingsWithheld SignatureQuoted TunnelHead
    }
    "Captures" captures {
        CaptureValue CaptureUnreadable CaptureSize CaptureTotal CaptureCost CaptureName
    }
    "Seals and slots" seals {
        SealedProperties SealedEnv SealedAgent AgentSize AgentReserve AgentMarker AgentEncodings AgentText AgentBootstraps SealedRegistry ExposedCredential
        SealInUrl SealOutsideSlot SealTransformed SealHalves SealCase SealPerPlace SlotSpot SlotTakes
        SlotHeader SecretSendable
    }
    "Values in messages" places {
        PlaceHidden PlaceAlike PlaceOnce PlaceElement PlaceType XmlDoctype PartEncoding PartFile PlaceCharset PlaceForm PlaceUnwritable
        JsonExact HostBoundary
    }
    "Secrets and logins" secrets {
        Tripwire TripwireCredentials TripwireTwice TripwireBatch TripwireUnseen TripwireShown ResultWithheld EndingWords LeakLatched LatchTrust
        FormBase64 FormHex FormJson FormPercent FormXml FormLines FormWide SecretLines
        RedactLog RedactResponse RedactCut GuestText SealPrinted
        LoginPlace LoginStatus LoginCount LoginFailures LoginRenewal LoginTokenSize LoginTokenForm TokenRecord TokenTrust TokenKnown
    }
    "Guests" component {
        Pin Signature SignatureKey SignatureTwice Imports NeedsTwice NeedsSize MultiMemory DescriptionForm
        DescribeTime ChildUser ChildEnvironment ChildPrivileges ChildAnswer
        EngineMemory64 EngineProposals
    }
    "Cache of prepared guests" cache {
        CacheDirectory CacheDirectoryLink CacheFile CacheFileLink CacheArtifactStamp CacheDigest CacheManifest
        CacheStamp
    }
    "Requests of the Director, and results" director {
        JsonDuplicateKey JsonDepth JsonMemory JsonTrailing ContextValues ApiVersion Arity
        CidForm HintForm NetworkTwice NetworkDecided VmUnreachable VmUnregistered ExitIsFailure
        GuestErrorPrefix MessageSize ResponseLogSize UndoOwn
    }
    "Stemcell images" image {
        ImageDirs ImageLink ImageRegular ImageKernel ImageRange ImageReadSize ImageUnchanged ImageMethod ImageType
        ArchiveBounds
    }
    "Registry" registry {
        RegistryIds RegistryIdForm RegistryCreateOnly RegistryOwnWrites RegistryChangeable RegistryShapes
        RegistryValues RegistryUndo
    }
    "Sandbox" sandbox {
        WasiEnvironment WasiArguments WasiFilesystem StdioLine RandomSize Instances
    }
    "Lock-down" lock_down {
        LockDownPrivileges LockDownCapabilities LockDownLandlock LockDownSeccomp LockDownDescriptors LockDownCoreDumps
    }
    "Logs" log {
        EscapeLog GuestLines AuditLink AuditTrust AuditLines AuditTarget TraceCredentials TraceBounds
    }
}

impl Check {
    /// Returns the check with this code.
    pub fn find(code: &str) -> Option<Check> {
        Check::ALL.iter().copied().find(|check| check.code() == code)
    }
}

/// Writes the code.
impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// Returns the text with the code of the check that refused, if one did: `text [code]`.
///
/// Such a text is for those who operate a CPI. A guest gets the text without the code.
pub fn with_code(text: &str, check: Option<Check>) -> String {
    match check {
        Some(check) => format!("{text} [{check}]"),
        None => text.to_owned(),
    }
}
