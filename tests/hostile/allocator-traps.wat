;; Traps when the host asks for memory.
(module
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable))
