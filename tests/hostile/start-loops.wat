;; Loops forever in its start function.
(module
  (func $start (loop $forever (br $forever)))
  (start $start))
