;; Passes the host a misaligned address for its answer.
(module
  (import "bosh:cpi/config@0.1.0" "properties" (func $properties (param i32)))
  (func (export "bosh:cpi/vms@0.1.0#has-vm") (param i32 i32) (result i32)
    (call $properties (i32.const 0x3001)) unreachable))
