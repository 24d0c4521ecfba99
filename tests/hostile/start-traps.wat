;; Traps in its start function.
(module
  (func $start unreachable)
  (start $start))
