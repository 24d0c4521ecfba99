//! The bindings that are generated from `wit/`: types, imports, and the export
//! macro that [`crate::export_cpi!`] uses. Guests need this module only for what
//! the SDK does not wrap.

#![allow(unsafe_code, unused_qualifications, unreachable_pub, missing_docs)]

wit_bindgen::generate!({
    path: "../../wit",
    world: "cpi",
    pub_export_macro: true,
    export_macro_name: "export_bindings",
    default_bindings_module: "wasm_cpi_sdk::bindings",
    additional_derives: [PartialEq],
});
