;; Answers with a pointer beyond the end of its memory.
(module
  (func (export "bosh:cpi/vms@0.1.0#has-vm") (param i32 i32) (result i32) (i32.const 0x7ffffff0)))
