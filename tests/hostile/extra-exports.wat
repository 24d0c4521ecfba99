;; Exports an interface that is not part of the world.
;; world: things
(module
  (import "[export]test:hostile/things" "[resource-new]thing" (func $new (param i32) (result i32)))
  (func (export "test:hostile/things#[constructor]thing") (result i32) (call $new (i32.const 1)))
  (data (i32.const 0x2000) "\00\00\00\00\01")
  (func (export "bosh:cpi/vms@0.1.0#has-vm") (param i32 i32) (result i32) (i32.const 0x2000)))
