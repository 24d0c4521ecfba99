;; Declares a table of ten million elements from the start.
(module (table 10000000 funcref))
