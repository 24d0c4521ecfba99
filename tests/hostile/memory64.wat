;; Addresses beyond 4 GiB.
(component (core module (memory i64 1)))
