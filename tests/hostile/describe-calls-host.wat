;; Calls an import from `describe`, while all imports are denied.
(module
  (import "bosh:cpi/log@0.1.0" "log" (func $log (param i32 i32 i32)))
  (data (i32.const 0x2000) "while being prepared")
  (func (export "bosh:cpi/describe@0.1.0#describe") (result i32)
    (call $log (i32.const 3) (i32.const 0x2000) (i32.const 20))
    (i32.const 0x1000)))
