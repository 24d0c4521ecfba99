//! The bindings of the host, generated from `wit/`.

wasmtime::component::bindgen!({
    path: "../wit",
    world: "cpi",
    imports: {
        "bosh:cpi/http.send": async,
        "bosh:cpi/http.send-all": async,
        "bosh:cpi/http.send-blocks": async,
        "bosh:cpi/http.session": async,
        "bosh:cpi/agent.bootstrap": async,
        "bosh:cpi/agent.created": async,
        "bosh:cpi/agent.attached": async,
        "bosh:cpi/agent.detached": async,
        "bosh:cpi/agent.deleted": async,
        "bosh:cpi/registry.get": async,
        "bosh:cpi/registry.put": async,
        "bosh:cpi/registry.delete": async,
        "bosh:cpi/image.sha256": async,
        "bosh:cpi/image.members": async,
        "bosh:cpi/image.read-member": async,
        "bosh:cpi/clock.sleep": async,
    },
    exports: { default: async },
});
