// Sends the requests of one CPI call, as a native CPI in Go does: net/http with kept
// connections, one login per process or one signature per request, every request after
// the response to the previous one. The argument is a recording of the requests; the
// Director's request is on stdin.
package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"strings"
	"time"
)

type request struct {
	Method  string      `json:"method"`
	URL     string      `json:"url"`
	Headers [][2]string `json:"headers"`
	Body    []byte      `json:"body"`
	Status  int         `json:"status"`
	// The name of the service in a signature.
	Service string `json:"service"`
}

type keys struct {
	ID     string `json:"id"`
	Secret string `json:"secret"`
	Region string `json:"region"`
}

type recording struct {
	CA       string    `json:"ca"`
	Login    *request  `json:"login"`
	Keys     *keys     `json:"keys"`
	Requests []request `json:"requests"`
}

func fail(err error) {
	fmt.Println(err)
	os.Exit(1)
}

func hash(bytes []byte) string {
	sum := sha256.Sum256(bytes)
	return hex.EncodeToString(sum[:])
}

func mac(key []byte, text string) []byte {
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(text))
	return sum.Sum(nil)
}

// Adds a signature of version 4. The URLs of all signed requests are without a query.
func sign(sent *http.Request, recorded request, with *keys) {
	now := time.Now().UTC()
	moment, day := now.Format("20060102T150405Z"), now.Format("20060102")
	sent.Header.Set("X-Amz-Date", moment)
	values := map[string]string{"host": sent.URL.Host}
	for name := range sent.Header {
		lower := strings.ToLower(name)
		if lower == "content-type" || strings.HasPrefix(lower, "x-amz-") {
			values[lower] = strings.TrimSpace(sent.Header.Get(name))
		}
	}
	var names []string
	for name := range values {
		names = append(names, name)
	}
	sort.Strings(names)
	headers := ""
	for _, name := range names {
		headers += name + ":" + values[name] + "\n"
	}
	signed := strings.Join(names, ";")
	canonical := strings.Join([]string{sent.Method, sent.URL.EscapedPath(), "", headers, signed, hash(recorded.Body)}, "\n")
	scope := strings.Join([]string{day, with.Region, recorded.Service, "aws4_request"}, "/")
	text := strings.Join([]string{"AWS4-HMAC-SHA256", moment, scope, hash([]byte(canonical))}, "\n")
	key := []byte("AWS4" + with.Secret)
	for _, part := range strings.Split(scope, "/") {
		key = mac(key, part)
	}
	sent.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s",
		with.ID, scope, signed, hex.EncodeToString(mac(key, text))))
}

// Decodes a response, as a CPI does. Error pages may be text.
func decode(header http.Header, body []byte) {
	if !strings.Contains(header.Get("Content-Type"), "xml") {
		var decoded interface{}
		_ = json.Unmarshal(body, &decoded)
		return
	}
	decoder := xml.NewDecoder(bytes.NewReader(body))
	for {
		if _, err := decoder.Token(); err != nil {
			return
		}
	}
}

// Sends a request and reads the whole response, which keeps the connection.
func send(client *http.Client, recorded request, token string, with *keys) http.Header {
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
	if with != nil {
		sign(sent, recorded, with)
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
	decode(response.Header, body)
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
	token := ""
	if recorded.Login != nil {
		token = send(client, *recorded.Login, "", nil).Get("X-Subject-Token")
	}
	for _, request := range recorded.Requests {
		send(client, request, token, recorded.Keys)
	}
	os.Stdout.WriteString(`{"result":null,"error":null,"log":""}`)
}
