// Sends the requests of one CPI call, as a native CPI in Go does: net/http with kept
// connections, one login per process, every request after the response to the previous
// one. The argument is a recording of the requests; the Director's request is on stdin.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
)

type request struct {
	Method  string      `json:"method"`
	URL     string      `json:"url"`
	Headers [][2]string `json:"headers"`
	Body    []byte      `json:"body"`
	Status  int         `json:"status"`
}

type recording struct {
	CA       string    `json:"ca"`
	Login    request   `json:"login"`
	Requests []request `json:"requests"`
}

func fail(err error) {
	fmt.Println(err)
	os.Exit(1)
}

// Sends a request and reads the whole response, which keeps the connection.
func send(client *http.Client, recorded request, token string) http.Header {
	sent, err := http.NewRequest(recorded.Method, recorded.URL, bytes.NewReader(recorded.Body))
	if err != nil {
		fail(err)
	}
	for _, header := range recorded.Headers {
		sent.Header.Add(header[0], header[1])
	}
	if token != "" {
		sent.Header.Set("X-Auth-Token", token)
	}
	response, err := client.Do(sent)
	if err != nil {
		fail(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		fail(err)
	}
	if response.StatusCode != recorded.Status {
		fail(fmt.Errorf("%s %s: %d %s", recorded.Method, recorded.URL, response.StatusCode, body))
	}
	// A CPI decodes every response. Error pages may be text.
	var decoded interface{}
	_ = json.Unmarshal(body, &decoded)
	return response.Header
}

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: peer RECORDING.json"))
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		fail(err)
	}
	var recorded recording
	if err := json.Unmarshal(text, &recorded); err != nil {
		fail(err)
	}
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(err)
	}
	var asked map[string]interface{}
	if err := json.Unmarshal(stdin, &asked); err != nil {
		fail(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(recorded.CA)) {
		fail(fmt.Errorf("the recording has no CA"))
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	token := send(client, recorded.Login, "").Get("X-Subject-Token")
	for _, request := range recorded.Requests {
		send(client, request, token)
	}
	os.Stdout.WriteString(`{"result":null,"error":null,"log":""}`)
}
