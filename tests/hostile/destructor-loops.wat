;; Drops a resource of its own whose destructor loops forever.
;; world: things
(module
  (import "[export]test:hostile/things" "[resource-new]thing" (func $new (param i32) (result i32)))
  (import "[export]test:hostile/things" "[resource-drop]thing" (func $drop (param i32)))
  (func (export "test:hostile/things#[constructor]thing") (result i32) (call $new (i32.const 1)))
  (func (export "test:hostile/things#[dtor]thing") (param i32) (loop $forever (br $forever)))
  (func (export "bosh:cpi/vms@0.1.0#has-vm") (param i32 i32) (result i32)
    (call $drop (call $new (i32.const 1))) unreachable))
