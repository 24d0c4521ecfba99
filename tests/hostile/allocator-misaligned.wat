;; Gives the host memory where no record can begin.
(module
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0x20001)))
