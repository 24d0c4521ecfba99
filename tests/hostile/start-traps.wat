;; Stops before anybody asked it anything.
(module
  (func $start unreachable)
  (start $start))
