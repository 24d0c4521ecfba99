//! The runtime as the host: every method calls the import of the same name.

use super::Host;
use crate::bindings::bosh::cpi::{agent, clock, config, http, image, log, random, registry};
use crate::types::DiskHint;

pub(super) struct Imports;

impl Host for Imports {
    fn properties(&self) -> String {
        config::properties()
    }
    fn call(&self) -> config::CallInfo {
        config::call()
    }

    fn http_send(&self, request: &http::Request) -> Result<http::Response, http::Error> {
        http::send(request)
    }
    fn http_send_all(&self, requests: &[http::Request]) -> Vec<Result<http::Response, http::Error>> {
        http::send_all(requests)
    }
    fn http_send_blocks(&self, upload: &http::BlockUpload) -> Result<http::BlocksSent, http::BlocksError> {
        http::send_blocks(upload)
    }
    fn http_session(&self, name: &str) -> Result<String, http::Error> {
        http::session(name)
    }

    fn agent_bootstrap(&self, settings: &agent::Settings) -> Result<String, agent::Error> {
        agent::bootstrap(settings)
    }
    fn agent_created(&self, vm: &str, registry_key: &str) -> Result<(), agent::Error> {
        agent::created(vm, registry_key)
    }
    fn agent_attached(&self, registry_key: &str, disk: &str, hint: &DiskHint) -> Result<(), agent::Error> {
        agent::attached(registry_key, disk, hint)
    }
    fn agent_detached(&self, registry_key: &str, disk: &str) -> Result<(), agent::Error> {
        agent::detached(registry_key, disk)
    }
    fn agent_deleted(&self, registry_key: &str) -> Result<(), agent::Error> {
        agent::deleted(registry_key)
    }

    fn registry_get(&self, id: &str) -> Result<String, registry::Error> {
        registry::get(id)
    }
    fn registry_put(&self, id: &str, settings: &str) -> Result<(), registry::Error> {
        registry::put(id, settings)
    }
    fn registry_delete(&self, id: &str) -> Result<(), registry::Error> {
        registry::delete(id)
    }

    fn image_size(&self) -> Result<u64, image::Error> {
        image::size()
    }
    fn image_sha256(&self) -> Result<String, image::Error> {
        image::sha256()
    }
    fn image_read(&self, offset: u64, length: u32) -> Result<Vec<u8>, image::Error> {
        image::read(offset, length)
    }
    fn image_members(&self) -> Result<Vec<image::Member>, image::Error> {
        image::members()
    }
    fn image_read_member(&self, name: &str, length: u32) -> Result<Vec<u8>, image::Error> {
        image::read_member(name, length)
    }

    fn log(&self, level: log::Level, message: &str) {
        log::log(level, message);
    }

    fn now_ms(&self) -> u64 {
        clock::now_ms()
    }
    fn monotonic_ns(&self) -> u64 {
        clock::monotonic_ns()
    }
    fn sleep(&self, ms: u64) -> Result<(), String> {
        clock::sleep(ms)
    }
    fn ending(&self) -> Option<String> {
        clock::ending()
    }

    fn random(&self, count: u32) -> Vec<u8> {
        random::bytes(count)
    }
}
