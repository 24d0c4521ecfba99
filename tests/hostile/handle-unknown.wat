;; Waits for a pollable that it never received.
;; world: clocks
(module
  (import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $wait (param i32)))
  (func (export "bosh:cpi/vms@0.1.0#has-vm") (param i32 i32) (result i32)
    (call $wait (i32.const 12345)) unreachable))
