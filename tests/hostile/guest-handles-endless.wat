;; Creates resources of its own forever.
;; world: things
(module
  (import "[export]test:hostile/things" "[resource-new]thing" (func $new (param i32) (result i32)))
  (func (export "test:hostile/things#[constructor]thing") (result i32) (call $new (i32.const 1)))
  (func (export "bosh:cpi/vms@0.1.0#has-vm") (param i32 i32) (result i32)
    (loop $more (drop (call $new (i32.const 1))) (br $more)) unreachable))
