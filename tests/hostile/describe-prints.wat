;; Prints forever from `describe`, while its output is discarded.
;; world: stdout
(module
  (import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))
  (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush"
    (func $write (param i32 i32 i32 i32)))
  (func (export "bosh:cpi/describe@0.1.0#describe") (result i32)
    (local $out i32)
    (local.set $out (call $stdout))
    (loop $more (call $write (local.get $out) (i32.const 0) (i32.const 4096) (i32.const 0x3000)) (br $more))
    unreachable))
