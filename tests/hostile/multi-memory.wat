;; Declares two memories in one module.
(component (core module (memory 1) (memory 1)))
