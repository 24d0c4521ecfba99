;; Logs half of a surrogate pair.
(module
  (import "bosh:cpi/log@0.1.0" "log" (func $log (param i32 i32 i32)))
  (data (i32.const 0x2000) "\ed\a0\80")
  (func (export "bosh:cpi/vms@0.1.0#has-vm") (param i32 i32) (result i32)
    (call $log (i32.const 1) (i32.const 0x2000) (i32.const 3)) unreachable))
