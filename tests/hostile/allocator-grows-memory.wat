;; Grows its memory by 100 MiB each time the host asks for memory.
(module
  (import "bosh:cpi/config@0.1.0" "properties" (func $properties (param i32)))
  (memory (export "memory") 4)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (drop (memory.grow (i32.const 1600))) (i32.const 0x20000))
  (func (export "bosh:cpi/vms@0.1.0#has-vm") (param i32 i32) (result i32)
    (loop $more (call $properties (i32.const 0x3000)) (br $more)) unreachable))
