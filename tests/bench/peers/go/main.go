// A minimal CPI in Go: decodes the request with encoding/json, loads a JSON
// configuration, answers info and create_vm.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

type request struct {
	Method     string                 `json:"method"`
	Arguments  []interface{}          `json:"arguments"`
	Context    map[string]interface{} `json:"context"`
	APIVersion int                    `json:"api_version"`
}

type config struct {
	Version    int                    `json:"version"`
	Guest      map[string]interface{} `json:"guest"`
	Properties map[string]interface{} `json:"properties"`
	Agent      map[string]interface{} `json:"agent"`
}

type response struct {
	Result interface{} `json:"result"`
	Error  interface{} `json:"error"`
	Log    string      `json:"log"`
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: peer --config CPI.json"))
	}
	text, err := os.ReadFile(os.Args[2])
	if err != nil {
		fail(err)
	}
	var loaded config
	if err := json.Unmarshal(text, &loaded); err != nil {
		fail(err)
	}
	if loaded.Version != 1 {
		fail(fmt.Errorf("the configuration does not have version 1"))
	}
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(err)
	}
	var asked request
	if err := json.Unmarshal(stdin, &asked); err != nil {
		fail(err)
	}
	var answer response
	switch asked.Method {
	case "info":
		answer.Result = map[string]interface{}{"api_version": 2, "stemcell_formats": []string{"openstack-raw"}}
	case "create_vm":
		answer.Result = []interface{}{fmt.Sprintf("vm-%v", asked.Arguments[0]), asked.Arguments[3]}
	}
	written, err := json.Marshal(answer)
	if err != nil {
		fail(err)
	}
	os.Stdout.Write(written)
}
