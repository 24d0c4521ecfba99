;; Runs before anybody asked it anything.
(module
  (func $start (loop $forever (br $forever)))
  (start $start))
