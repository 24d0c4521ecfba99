;; A memory shared between threads.
(component (core module (memory 1 1 shared)))
