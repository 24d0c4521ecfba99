;; Nothing but what every guest has: each method traps.
(module)
