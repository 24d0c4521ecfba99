;; Asks WASI for a socket; has a VM if the error is `access-denied`.
;; world: sockets
(module
  (import "wasi:sockets/tcp-create-socket@0.2.0" "create-tcp-socket" (func $create (param i32 i32)))
  (data (i32.const 0x2000) "\00\00\00\00\00")
  (func (export "bosh:cpi/vms@0.1.0#has-vm") (param i32 i32) (result i32)
    (call $create (i32.const 0) (i32.const 0x3000))
    ;; The result is an error with the second code, `access-denied`.
    (i32.store8 (i32.const 0x2004)
      (i32.and (i32.eq (i32.load8_u (i32.const 0x3000)) (i32.const 1))
        (i32.eq (i32.load8_u (i32.const 0x3004)) (i32.const 1))))
    (i32.const 0x2000)))
