//! The simulated AWS: behind a gateway, as a program, and in the opinion of botocore and moto.

mod cpi;
mod gateway;
mod second_opinion;
mod simulator_program;
