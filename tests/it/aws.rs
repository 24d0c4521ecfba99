//! The simulated AWS: behind a gateway, as a program, in the opinion of botocore and moto, and used by a guest
//! whose requests the host signs.

mod cpi;
mod gateway;
mod metadata_credentials;
mod moto;
mod presets;
mod second_opinion;
mod signed_guest;
mod signed_lifecycle;
mod simulator_program;
