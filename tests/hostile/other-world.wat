;; Exports `describe` with another type, and nothing else.
(component
  (core module $m (func (export "describe") (result i32) (i32.const 7)))
  (core instance $i (instantiate $m))
  (func $describe (result u32) (canon lift (core func $i "describe")))
  (instance $exported (export "describe" (func $describe)))
  (export "bosh:cpi/describe@0.1.0" (instance $exported)))
