;; Imports the network, another vendor's interface, a later version of the world,
;; an interface that the world does not have, and a later WASI.
(component
  (import "wasi:http/outgoing-handler@0.2.0" (instance))
  (import "acme:secrets/store" (instance))
  (import "bosh:cpi/http@0.9.0" (instance))
  (import "bosh:cpi/files@0.1.0" (instance))
  (import "wasi:clocks/wall-clock@0.3.0" (instance))
  (import "wasi:io/poll@0.2.3" (instance)))
