;; Answers with a misaligned pointer to its result.
(module
  (func (export "bosh:cpi/vms@0.1.0#has-vm") (param i32 i32) (result i32) (i32.const 0x2001)))
