;; Has only what every guest has: each method traps.
(module)
