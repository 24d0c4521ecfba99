;; Has data where it has no memory.
(module (data (i32.const 0x7ffffff0) "too far"))
