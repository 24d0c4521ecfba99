;; Wants ten million elements before it has done anything.
(module (table 10000000 funcref))
