;; Has a data segment beyond the end of its memory.
(module (data (i32.const 0x7ffffff0) "too far"))
