;; Sends a body of 60 MiB, all of which is in its memory.
(module
  (import "bosh:cpi/http@0.1.0" "send"
    (func $send (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  (memory (export "memory") 1024)
  (data (i32.const 0x2000) "POSThttps://api.iaas.test/v1/x")
  (func (export "bosh:cpi/vms@0.1.0#has-vm") (param i32 i32) (result i32)
    (call $send (i32.const 0x2000) (i32.const 4) (i32.const 0x2004) (i32.const 26) (i32.const 0) (i32.const 0)
      (i32.const 1) (i32.const 0) (i32.const 0x3c00000) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0x3000))
    unreachable))
