;; Traps in `describe`.
(module
  (func $whoami (export "bosh:cpi/describe@0.1.0#describe") (result i32) unreachable))
