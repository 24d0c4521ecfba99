;; Declares a memory that threads share.
(component (core module (memory 1 1 shared)))
