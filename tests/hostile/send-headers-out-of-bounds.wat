;; Sends 268 million headers, of which only a few bytes are in its memory.
(module
  (import "bosh:cpi/http@0.1.0" "send"
    (func $send (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  (data (i32.const 0x2000) "POSThttps://api.iaas.test/v1/x")
  (func (export "bosh:cpi/vms@0.1.0#has-vm") (param i32 i32) (result i32)
    (call $send (i32.const 0x2000) (i32.const 4) (i32.const 0x2004) (i32.const 26) (i32.const 0x4000) (i32.const 0xfffffff)
      (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0x3000))
    unreachable))
