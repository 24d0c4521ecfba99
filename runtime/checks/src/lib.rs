//! Every check that keeps a hostile guest in, by name, so that mutation tests can
//! turn one off and see that a case notices.
//!
//! A program that ships has no switch: there `on` is the constant `true`. With the
//! feature `holes` one check is off, the one that `WASM_CPI_HOLE` names. Each variant
//! stands for one mechanism; checks that back each other up share one, and what types
//! or libraries make impossible has none. The limits of the configuration can be
//! lifted the same way; the runtime knows their names.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

#[cfg(feature = "holes")]
mod switch;

#[cfg(feature = "holes")]
pub use switch::{VARIABLE, list, switched_off};

macro_rules! checks {
    ($($area:literal { $($variant:ident $what:literal;)* })*) => {
        /// One named check.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Check { $($(#[doc = $what] $variant,)*)* }

        #[cfg(feature = "holes")]
        impl Check {
            /// Each check with its name as written here, its area and what it refuses.
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
        PathText "escapes in a path that are no text";
        PathDotParameters "a segment of dots, or of nothing, with parameters in a path";
    }
    "policy" {
        EndpointInPolicy "a grant for the registry, the message bus or the blobstore";
        EndpointOfEnv "such an endpoint that the VM's env names";
        EndpointByName "a request to the name of such an endpoint";
        EndpointByAddress "a request to the address of such an endpoint under another name";
        EndpointUnresolved "a request to the port of such an endpoint whose name does not resolve now";
        NeedsAbsent "requests of a module that declares no needs, without `trust_undeclared`";
        NeedsHttp "a granted request that the module's needs do not declare";
        NeedsSlots "a granted slot that the module's needs do not declare";
        NeedsRegistry "use of the registry that the module's needs do not declare";
        NeedsImage "use of the image that the module's needs do not declare";
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
        LayerCapture "a value captured with the job's credentials for such an origin";
        LayerCertificate "the job's client certificate for such an origin";
        LiteralCredential "a credential written into the policy itself";
        ConnectionHeader "an auth header that belongs to the connection";
        LayerCa "a CA from the context for the job's origin";
        KeyFile "a private key that everybody can read";
        PropertyName "a property that calls itself `agent`";
        PlaceHidden "invisible characters in a place";
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
    "tls" {
        TlsIssuer "a certificate that no trusted authority issued";
        TlsName "a certificate for another name";
        TlsTime "a certificate that is expired or not valid yet";
        TlsPin "a key that is none of the grant's pins";
        TlsEnvironment "authorities from SSL_CERT_FILE";
        TlsKeyLog "session keys written to SSLKEYLOGFILE";
    }
    "http-request" {
        MethodKnown "a method that is none of the seven";
        HeaderFraming "headers that the host alone sets";
        HeaderValue "control characters in a header's value";
        HeaderImpostor "headers that make a request look like another one";
        MethodParameter "a `_method` in the query or a form";
        HeaderUnderscore "any of these with `_` in place of `-`";
        HeaderAuthorization "an Authorization header of the guest's own";
        HeaderOfAuth "the header that the grant's auth sets";
        HeaderCredentials "other credential headers where a grant sends secrets";
        HeaderDisguise "Accept-Encoding and Range where a grant sends secrets";
        QueryCredentials "credentials in the query where a grant sends secrets";
        IdentityRequested "compressed answers, which nobody may ask for by default";
        ProxyEnvironment "proxies from the environment";
    }
    "http-response" {
        Redirects "a redirect that the host would follow";
        SwitchedProtocol "a switch to another protocol";
        Truncation "an answer that ends before it is complete";
        EncodedResponse "an encoded answer where a grant sends secrets";
        CredentialHeaders "Set-Cookie and the like in an answer";
        CredentialFields "adminPass and the like in an answer";
        CredentialsHandedOut "other credentials in the answer to a request with credentials";
        CredentialUnreadable "an answer that names such a field and cannot be read";
    }
    "captures" {
        CaptureValue "a captured value that the guest would see";
        CaptureUnreadable "an answer whose captured value cannot be told apart";
        CaptureSize "a captured value longer than any credential";
        CaptureTotal "captured values without end";
        CaptureName "a capture that calls itself `agent`";
    }
    "sealing" {
        SealedProperties "properties that the guest would see";
        SealedEnv "the VM's env beyond what the Director logs";
        SealedAgent "agent settings that the guest would see";
        AgentTotal "more user-data in a call than any platform takes";
        SealedRegistry "the registry's settings that the guest would see";
        ExposedCredential "credentials by their names below an exposed property";
        SealInUrl "a seal in the URL";
        SealOutsideSlot "a seal where the grant has no slot";
        SealTransformed "a seal that was encoded or cut";
        SealHalves "half of a seal";
        SealCase "a seal in other case";
        SlotSpot "a seal in a slot of another method or path";
        SlotTakes "a seal that the slot does not take";
        SlotHeader "something else than a seal in a header that is a slot";
        PlaceAlike "a field that other readers could find elsewhere: in other case, with `_` for `-`, behind a `;`, encoded";
        PlaceOnce "a field that occurs twice, where one has to be told apart";
        PlaceType "a body of another Content-Type than the place wants";
        XmlDoctype "XML with a document type or processing instructions";
        PartEncoding "a part of a form with a transfer encoding";
        PlaceCharset "a body in another charset than it is read in";
        PlaceForm "a form that is not properly encoded";
        PlaceUnwritable "a value that would break out of its place";
        JsonExact "numbers that would not survive being written again";
    }
    "secrets" {
        Tripwire "an answer that holds a secret";
        TripwireTwice "going on after the second such answer";
        TripwireShown "what a login shows, if it holds a secret";
        ResultWithheld "a result that holds a secret";
        FormBase64 "secrets and seals as base64";
        FormHex "secrets and seals as hexadecimal digits";
        FormJson "secrets and seals with JSON escapes";
        FormPercent "secrets and seals percent-encoded";
        FormXml "secrets and seals with XML entities";
        FormLines "secrets and seals with line breaks in them";
        SecretLines "single lines of a secret that has many";
        RedactLog "secrets in lines of the log";
        RedactAnswer "secrets in the message of an error";
        RedactGuestError "secrets in what a guest is told of a failed request";
        SealPrinted "seals in lines of the log and in messages";
        LoginPlace "where a login goes, in what a guest is told of its failure";
        LoginStatus "the answer to a login that failed or leads elsewhere";
        LoginCount "logins without end";
        LoginTokenSize "a token longer than any header";
    }
    "component" {
        Pin "a module that is not the pinned one";
        Signature "a module that too few keys signed";
        SignatureKey "a key with which anybody can sign";
        SignatureTwice "a key that is listed twice to count twice";
        Imports "imports that no CPI is given";
        NeedsTwice "two sections of needs";
        NeedsSize "needs of more than 64 KiB";
        DescriptionForm "a description that is not plain, or claims the runtime's name";
        DescribeTime "a `describe` that takes its time";
        ChildUser "compiling as root";
        ChildEnvironment "an environment for the compiling child";
        ChildPrivileges "new privileges for the compiling child";
        EngineMemory64 "64-bit memories";
        EngineMultiMemory "several memories in a module";
        EngineProposals "other proposals that guests do not need";
    }
    "cache" {
        CacheDirectory "a cache directory that others can write";
        CacheDirectoryLink "a cache directory that is a link";
        CacheFile "files in the cache that others can write";
        CacheFileLink "files in the cache that are links";
        CacheArtifactStamp "an artifact that changed since it was hashed";
        CacheDigest "an artifact that is not what its name says";
        CacheManifest "a manifest of another format or guest";
        CacheStamp "a guest's file that changed since it was hashed";
    }
    "director" {
        JsonDuplicateKey "a key that stands in JSON twice";
        JsonDepth "JSON that is nested too deeply";
        JsonMemory "JSON of more values than memory is spent on";
        JsonTrailing "text behind a JSON document";
        ContextValues "more properties in a context than anybody needs";
        ApiVersion "an API version that this CPI does not speak";
        Arity "more arguments than the method has";
        CidForm "a cloud ID that is empty or has control characters";
        HintForm "a disk hint with control characters";
        NetworkTwice "a network that a guest returned twice";
        NetworkDecided "addresses that the Director decided on";
        VmUnreachable "a VM whose user-data was never sent";
        VmUnregistered "a VM without settings in the registry";
        ExitIsFailure "success by `exit(0)`";
        BorrowedWords "a guest's error that speaks as the runtime";
        MessageSize "an error's message without end";
        StorySize "a log in the response without end";
    }
    "image" {
        ImageDirs "an image outside of `image_dirs`";
        ImageLink "an image that is a link";
        ImageRegular "an image that is no regular file";
        ImageKernel "an image that the kernel makes up";
        ImageRange "reading behind the image's end";
        ImageReadSize "reading too much of the image at once";
        ArchiveBounds "an archive with too many or too long parts";
    }
    "registry" {
        RegistryIds "settings of an instance that is not of this call";
        RegistryIdForm "an instance ID that changes the URL";
        RegistryCreateOnly "settings that `create_vm` would overwrite";
        RegistryOwnWrites "settings that `create_vm` did not write";
        RegistryChangeable "changes of settings beyond disks and networks";
        RegistryShapes "disks and networks that the Agent cannot read";
        RegistryValues "settings of more values than anybody needs";
        RegistryUndo "settings of a VM that was not created after all";
    }
    "sandbox" {
        WasiEnvironment "the environment";
        WasiArguments "the program's arguments";
        WasiFilesystem "files";
        StdioLine "an endless line on stdout";
        RandomSize "more than 64 KiB of randomness at once";
        Instances "more instances, tables and memories than any guest needs";
    }
    "walls" {
        WallPrivileges "new privileges for a call";
        WallLandlock "files and ports that a call does not need";
        WallSeccomp "system calls that a call does not need";
        WallDescriptors "descriptors of whoever started it";
        WallDumps "core dumps, and tracing by others";
    }
    "log" {
        EscapeLog "control and bidi characters in lines of the log";
        GuestLines "line ends in a guest's error and in the names of its functions";
        AuditLink "an audit file that is a link";
        AuditTrust "an audit file that others can write";
        AuditLines "lines of the audit log without end";
        TraceCredentials "credentials by their names in the trace of HTTP";
        TraceBounds "a trace of HTTP without end";
    }
}

#[cfg(not(feature = "holes"))]
impl Check {
    /// Returns true: a program that ships makes every check.
    #[inline(always)]
    pub const fn on(self) -> bool {
        true
    }
}
