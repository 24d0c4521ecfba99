;; Answers a disk hint that is neither a text nor fields.
(module
  (data (i32.const 0x2000) "\00\00\00\00\09\00\00\00\00\30\00\00\01\00\00\00")
  (data (i32.const 0x3000) "h")
  (func (export "bosh:cpi/disks@0.1.0#attach-disk") (param i32 i32 i32 i32) (result i32) (i32.const 0x2000)))
