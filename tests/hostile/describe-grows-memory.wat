;; Grows its memory until that fails, before it answers `describe`.
(module
  (memory (export "memory") 4)
  (func (export "bosh:cpi/describe@0.1.0#describe") (result i32)
    (loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
    unreachable))
