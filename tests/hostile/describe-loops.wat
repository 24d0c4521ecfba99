;; Loops forever in `describe`.
(module
  (func (export "bosh:cpi/describe@0.1.0#describe") (result i32) (loop $forever (br $forever)) unreachable))
