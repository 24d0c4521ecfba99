;; Imports a function that WASI's file system does not have; has a VM if the
;; answer is empty.
;; world: files
(module
  (import "wasi:filesystem/types@0.2.0" "read-any-file" (func $read (param i32 i32 i32)))
  (data (i32.const 0x2000) "\00\00\00\00\00")
  (data (i32.const 0x2100) "/etc/passwd")
  (func (export "bosh:cpi/vms@0.1.0#has-vm") (param i32 i32) (result i32)
    (call $read (i32.const 0x2100) (i32.const 11) (i32.const 0x3000))
    (i32.store8 (i32.const 0x2004) (i32.eqz (i32.load (i32.const 0x3004))))
    (i32.const 0x2000)))
