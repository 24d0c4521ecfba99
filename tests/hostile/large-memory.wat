;; Declares a memory of 1 GiB from the start.
(module (memory (export "memory") 16384))
