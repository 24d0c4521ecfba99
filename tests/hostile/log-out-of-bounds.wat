;; Logs a message that lies beyond the end of its memory.
(module
  (import "bosh:cpi/log@0.1.0" "log" (func $log (param i32 i32 i32)))
  (func (export "bosh:cpi/vms@0.1.0#has-vm") (param i32 i32) (result i32)
    (call $log (i32.const 1) (i32.const 0x7ffffff0) (i32.const 0x7fffffff)) unreachable))
