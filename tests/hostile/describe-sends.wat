;; Sends a request from `describe`, and traps unless the request is denied.
(module
  (import "bosh:cpi/http@0.1.0" "send"
    (func $send (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  (data (i32.const 0x2000) "GET https://api.iaas.test/v1/x")
  (func (export "bosh:cpi/describe@0.1.0#describe") (result i32)
    (call $send (i32.const 0x2000) (i32.const 3) (i32.const 0x2004) (i32.const 26) (i32.const 0) (i32.const 0)
      (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0x3000))
    ;; The result must be an error of the kind `denied`.
    (if (i32.ne (i32.load8_u (i32.const 0x3000)) (i32.const 1)) (then unreachable))
    (if (i32.ne (i32.load8_u (i32.const 0x3004)) (i32.const 0)) (then unreachable))
    (i32.const 0x1000)))
