;; Answers a VM with a thousand name servers of one megabyte each, which all point
;; to the same megabyte.
(module
  (memory (export "memory") 32)
  (data (i32.const 0x2000) "\00\00\00\00\00\30\00\00\01\00\00\00\00\40\00\00\01\00\00\00")
  (data (i32.const 0x3000) "v")
  (data (i32.const 0x4040) "\00\50\00\00\e8\03\00\00")
  (func (export "bosh:cpi/vms@0.1.0#create-vm")
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.const 0x5000))
    (loop $more
      (i32.store (local.get $at) (i32.const 0x40000))
      (i32.store offset=4 (local.get $at) (i32.const 0x100000))
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (br_if $more (i32.lt_u (local.get $at) (i32.const 0x6f40))))
    (i32.const 0x2000)))
