;; Wants 1 GiB before it has done anything.
(module (memory (export "memory") 16384))
